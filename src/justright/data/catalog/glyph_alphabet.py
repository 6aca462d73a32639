"""The alphabet of the embedded glyphs: which characters are classes, and which fonts can draw them.

The table is literal so that the classes stay the same whatever font version is installed. Outlines that many
scripts share (A in Latin, Greek and Cyrillic) appear once, under the first script that has them. Characters that
differ from another only by size, place, thickness or slant are left out, because a drawing varies exactly those.
To grow the table, append: labels are positions, and a position in use must not move.
"""

from __future__ import annotations

from typing import NamedTuple


class Script(NamedTuple):
    """The characters of one script, the family the script belongs to, and the font groups that hold them all."""

    script: str
    family: str
    fonts: str
    characters: str


BLOCKS: tuple[Script, ...] = (
    Script("latin", "alphabets", "sans serif mono stix", "ABCDEFGHJKLMNPQRSTUVWXYZabdefhikmnpqtyßæøþð&@"),
    Script("greek", "alphabets", "sans serif mono stix", "ΓΔΞΣΦΨΩαβεζηιλμνξπςστφωϑϖϞϠϡϰϱ"),
    Script("cyrillic", "alphabets", "sans serif mono", "ДЖИЙЛЦЧШЩЪЫЬЭЮЯЂЉЊђћҐҕҗҘқңҤҪҲӁӇӑӔӖӘӚӞӠӮӴӶӸ"),
    Script("armenian", "alphabets", "sans serif mono", "ԳԴԵԶԷԸԹԺԻԽԾԿՀՃՄՆՇՉՊՌՎՐՒՔՖաթխկմնչպջվփֆև"),
    Script("georgian", "alphabets", "sans serif", "ბდეთკლმნრფქჭჯჰჱჲჴჶჹႡႢႥႦႧႨႩႪႫႬႮႰႵႸႼႽႾႿჁჃჄჅ"),
    Script("tifinagh", "alphabets", "sans-upright", "ⴳⴽⴿⵃⵄⵆⵇⵈⵋⵌⵎⵐⵒⵓⵖⵘⵚⵛⵜⵞⵢⵣⵤ"),
    Script("old-italic", "alphabets", "sans", "𐌄𐌌𐌍𐌎𐌐𐌔𐌖𐌙𐌝"),
    Script("ogham", "alphabets", "sans-upright", "ᚂᚃᚄᚆᚇᚈᚉᚌᚍᚎᚑᚒᚓᚕᚖᚗᚙᚚ"),
    Script("phonetic", "alphabets", "sans serif mono", "ɕɗɚɠɣɧɬɮɱɲɶɹɻɾʁʂʆʉʍʐʑʖʞʣʤʦʨʩʫʬʭ"),
    Script("hebrew", "right-to-left", "sans", "אבגדהזטךכלםמעףפץצקרשתﭏ"),
    Script("arabic", "right-to-left", "sans-upright mono-upright", "ءؤئبةتثجخدذرزسشضطعغفقكلمنوىيٹٻڑڤکگھ"),
    Script("nko", "right-to-left", "sans-upright", "߂߃߄߅߆߇߉ߍߎߏߐߑߒߔߖߗߘߙߚߛߜߝߞߟߢߤ"),
    Script("canadian-syllabics", "syllabics", "sans", "ᐂᐅᐆᐊᐋᐌᐘᐠᐫᐼᑁᑇᑖᑗᑘᑠᑪᑰᑴᑸᒓᒚᒡᓀᓔᓚᓝᓞᓟᓢᓥᓮᓷᓸᓹᔒᔔᔚᔹᕌᕾᖁᖏᖖᖢᖤ"),
    Script("lao", "syllabics", "sans", "ຂຄງຈຊຍຕຖທນປຜຝພມຣລວສຮຯະາຳຽແໂໃ໑໒໓໖໗໘ໜ"),
    Script("digits", "numerals", "sans serif mono stix", "0123456789"),
    Script("arabic-digits", "numerals", "sans-upright mono-upright", "٢٣٤٦٩۵۶"),
    Script("double-struck", "letterlike", "sans", "𝔸𝔹𝔻𝔼𝔽𝕀𝕁𝕂𝕃𝕄𝕆𝕌𝕍𝕎𝕏𝕐𝕒𝕓𝕔𝕕𝕗𝕘𝕚𝕜𝕝𝕟𝕤𝕥𝕦𝕪𝕫ℍℕℙℝ"),
    Script("currency", "letterlike", "sans mono", "$¢£¥₠₡₢₧₨₪₫€₯₰₲₴₸₹"),
    Script("punctuation", "letterlike", "sans serif", "?%*()[{}§¶©®‡‰‱⁂⁇⁈⁉⁋"),
    Script("arrows", "technical", "sans serif", "←→↓↖↗↘↙↜↝↥↯↰↱↲↳↴↵↶↷↸↹↺↻↼↽↾⇃⇄⇅⇋⇑⇖⇗⇘⇙⇱⇲⇵⇶⟰⟱⟴⥀⬏"),
    Script("operators", "technical", "sans stix-upright", "×÷=±¬<>∄∈∋∐∓√∝∠∴∵∹∿≅≏≙≤≿⊁⊃⊄⊆⊋⊓⊗⊢⊧⊪⊰⊱⊵⊶⊻⋜⋝⋮⋰⋱⩪"),
    Script("apl", "technical", "mono", "⌶⌸⌹⌼⌿⍁⍂⍊⍋⍌⍍⍎⍐⍓⍔⍘⍚⍛⍜⍝⍡⍢⍣⍤⍥⍦⍧⍨⍩⍪⍮⍱⍲⍶⍷⍹"),
    Script("box-drawing", "geometry", "sans serif mono", "┤┴╒╔╕╗╘╚╛╝╟╢╥╦╧╨╩╫╱╲"),
    Script("shapes", "geometry", "sans serif mono", "□▭▯▲▶▼◀◇◈◐◑◒◓◜◝◟◠◡◢◣◤◥◴◸◹◺◿⬖⬗⬘⬙░▚▞"),
    Script("braille", "patterns", "sans serif", "⠃⠊⠍⠎⠑⠕⠛⠜⠟⠣⠥⠩⠪⠬⠱⡃⡅⡉⡊⡑⡜⡡⡨⡯⡹⢅⢉⢊⢌⢑⢟⢣⢺⣁⣈⣵"),
    Script("tetragrams", "patterns", "sans", "𝌆𝌋𝌓𝌗𝌚𝌞𝌨𝌬𝌴𝌽𝌾𝍂𝍈𝍎𝍓𝍕𝍖"),
    Script("dingbats", "pictures", "sans mono-upright", "✁✂✃✆✇✈✉✌✍✎✏✐✓✗✙✜✞✠✡✦✧✩✰✳✾✿❀❂❉❝❞❡❣❤❥❦❧"),
    Script("symbols", "pictures", "sans", "☂☃☄☈☉☊☘☙☚☜☝☞☟☡☢☦☪☭☯☼☽☾☿♃♄♈♉♊♋♌♍♎♑♓♔♗♘♡♤♨♩♫♬♭♮⚂⚐⚔⚠⚡⚤⚳⚶"),
    Script("faces", "pictures", "sans", "😀😇😈😋😎😑😓😗😘😦😨😭😱😳😴😶😸😻😽"),
)

FACES: dict[str, tuple[str, ...]] = {
    "sans": ("DejaVuSans", "DejaVuSans-Bold", "DejaVuSans-Oblique", "DejaVuSans-BoldOblique"),
    "sans-upright": ("DejaVuSans", "DejaVuSans-Bold"),
    "serif": ("DejaVuSerif", "DejaVuSerif-Bold", "DejaVuSerif-Italic", "DejaVuSerif-BoldItalic"),
    "mono": ("DejaVuSansMono", "DejaVuSansMono-Bold", "DejaVuSansMono-Oblique", "DejaVuSansMono-BoldOblique"),
    "mono-upright": ("DejaVuSansMono", "DejaVuSansMono-Bold"),
    "stix": ("STIXGeneral", "STIXGeneralBol", "STIXGeneralItalic", "STIXGeneralBolIta"),
    "stix-upright": ("STIXGeneral", "STIXGeneralBol"),
}
"""Font files by group. Some scripts exist upright only."""


def faces_of(block: Script) -> tuple[str, ...]:
    """The font files that hold every character of the block."""
    return tuple(face for group in block.fonts.split() for face in FACES[group])
