"""The alphabet of the embedded glyphs: which characters are classes, and which fonts can draw them.

The table is literal so that the classes stay the same whatever font version is installed. Outlines that many
scripts share (A in Latin, Greek and Cyrillic) appear once, under the first script that has them. Characters that
differ from another only by size, place, thickness or slant are left out, because a drawing varies exactly those.
To grow the table, append: labels are positions, and a position in use must not move.
"""

from __future__ import annotations

from typing import NamedTuple


class Block(NamedTuple):
    """The characters of one script, the family the script belongs to, and the font groups that hold them all."""

    script: str
    family: str
    fonts: str
    characters: str


BLOCKS: tuple[Block, ...] = (
    Block("latin", "alphabets", "sans serif mono stix", "ABCDEFGHJKLMNPQRSTUVWXYZabdefhikmnpqtyßæøþð&@"),
    Block("greek", "alphabets", "sans serif mono stix", "ΓΔΞΣΦΨΩαβεζηιλμνξπςστφωϑϖϞϠϡϰϱ"),
    Block("cyrillic", "alphabets", "sans serif mono", "ДЖИЙЛЦЧШЩЪЫЬЭЮЯЂЉЊђћҐҕҗҘқңҤҪҲӁӇӑӔӖӘӚӞӠӮӴӶӸ"),
    Block("armenian", "alphabets", "sans serif mono", "ԳԴԵԶԷԸԹԺԻԽԾԿՀՃՄՆՇՉՊՌՎՐՒՔՖաթխկմնչպջվփֆև"),
    Block("georgian", "alphabets", "sans serif", "ბდეთკლმნრფქჭჯჰჱჲჴჶჹႡႢႥႦႧႨႩႪႫႬႮႰႵႸႼႽႾႿჁჃჄჅ"),
    Block("tifinagh", "alphabets", "sans-upright", "ⴳⴽⴿⵃⵄⵆⵇⵈⵋⵌⵎⵐⵒⵓⵖⵘⵚⵛⵜⵞⵢⵣⵤ"),
    Block("old-italic", "alphabets", "sans", "𐌄𐌌𐌍𐌎𐌐𐌔𐌖𐌙𐌝"),
    Block("ogham", "alphabets", "sans-upright", "ᚂᚃᚄᚆᚇᚈᚉᚌᚍᚎᚑᚒᚓᚕᚖᚗᚙᚚ"),
    Block("phonetic", "alphabets", "sans serif mono", "ɕɗɚɠɣɧɬɮɱɲɶɹɻɾʁʂʆʉʍʐʑʖʞʣʤʦʨʩʫʬʭ"),
    Block("hebrew", "right-to-left", "sans", "אבגדהזטךכלםמעףפץצקרשתﭏ"),
    Block("arabic", "right-to-left", "sans-upright mono-upright", "ءؤئبةتثجخدذرزسشضطعغفقكلمنوىيٹٻڑڤکگھ"),
    Block("nko", "right-to-left", "sans-upright", "߂߃߄߅߆߇߉ߍߎߏߐߑߒߔߖߗߘߙߚߛߜߝߞߟߢߤ"),
    Block("canadian-syllabics", "syllabics", "sans", "ᐂᐅᐆᐊᐋᐌᐘᐠᐫᐼᑁᑇᑖᑗᑘᑠᑪᑰᑴᑸᒓᒚᒡᓀᓔᓚᓝᓞᓟᓢᓥᓮᓷᓸᓹᔒᔔᔚᔹᕌᕾᖁᖏᖖᖢᖤ"),
    Block("lao", "syllabics", "sans", "ຂຄງຈຊຍຕຖທນປຜຝພມຣລວສຮຯະາຳຽແໂໃ໑໒໓໖໗໘ໜ"),
    Block("digits", "numerals", "sans serif mono stix", "0123456789"),
    Block("arabic-digits", "numerals", "sans-upright mono-upright", "٢٣٤٦٩۵۶"),
    Block("double-struck", "letterlike", "sans", "𝔸𝔹𝔻𝔼𝔽𝕀𝕁𝕂𝕃𝕄𝕆𝕌𝕍𝕎𝕏𝕐𝕒𝕓𝕔𝕕𝕗𝕘𝕚𝕜𝕝𝕟𝕤𝕥𝕦𝕪𝕫ℍℕℙℝ"),
    Block("currency", "letterlike", "sans mono", "$¢£¥₠₡₢₧₨₪₫€₯₰₲₴₸₹"),
    Block("punctuation", "letterlike", "sans serif", "?%*()[{}§¶©®‡‰‱⁂⁇⁈⁉⁋"),
    Block("arrows", "technical", "sans serif", "←→↓↖↗↘↙↜↝↥↯↰↱↲↳↴↵↶↷↸↹↺↻↼↽↾⇃⇄⇅⇋⇑⇖⇗⇘⇙⇱⇲⇵⇶⟰⟱⟴⥀⬏"),
    Block("operators", "technical", "sans stix-upright", "×÷=±¬<>∄∈∋∐∓√∝∠∴∵∹∿≅≏≙≤≿⊁⊃⊄⊆⊋⊓⊗⊢⊧⊪⊰⊱⊵⊶⊻⋜⋝⋮⋰⋱⩪"),
    Block("apl", "technical", "mono", "⌶⌸⌹⌼⌿⍁⍂⍊⍋⍌⍍⍎⍐⍓⍔⍘⍚⍛⍜⍝⍡⍢⍣⍤⍥⍦⍧⍨⍩⍪⍮⍱⍲⍶⍷⍹"),
    Block("box-drawing", "geometry", "sans serif mono", "┤┴╒╔╕╗╘╚╛╝╟╢╥╦╧╨╩╫╱╲"),
    Block("shapes", "geometry", "sans serif mono", "□▭▯▲▶▼◀◇◈◐◑◒◓◜◝◟◠◡◢◣◤◥◴◸◹◺◿⬖⬗⬘⬙░▚▞"),
    Block("braille", "patterns", "sans serif", "⠃⠊⠍⠎⠑⠕⠛⠜⠟⠣⠥⠩⠪⠬⠱⡃⡅⡉⡊⡑⡜⡡⡨⡯⡹⢅⢉⢊⢌⢑⢟⢣⢺⣁⣈⣵"),
    Block("tetragrams", "patterns", "sans", "𝌆𝌋𝌓𝌗𝌚𝌞𝌨𝌬𝌴𝌽𝌾𝍂𝍈𝍎𝍓𝍕𝍖"),
    Block("dingbats", "pictures", "sans mono-upright", "✁✂✃✆✇✈✉✌✍✎✏✐✓✗✙✜✞✠✡✦✧✩✰✳✾✿❀❂❉❝❞❡❣❤❥❦❧"),
    Block("symbols", "pictures", "sans", "☂☃☄☈☉☊☘☙☚☜☝☞☟☡☢☦☪☭☯☼☽☾☿♃♄♈♉♊♋♌♍♎♑♓♔♗♘♡♤♨♩♫♬♭♮⚂⚐⚔⚠⚡⚤⚳⚶"),
    Block("faces", "pictures", "sans", "😀😇😈😋😎😑😓😗😘😦😨😭😱😳😴😶😸😻😽"),
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


def faces_of(block: Block) -> tuple[str, ...]:
    """The font files that hold every character of the block."""
    return tuple(face for group in block.fonts.split() for face in FACES[group])
