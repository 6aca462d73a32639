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
    Block("greek", "alphabets", "sans serif mono stix", "ΓΔΞΣΦΨΩαβεζηιλμνξπςστφωϑϖϞϠϡϰϱϵ"),
    Block("cyrillic", "alphabets", "sans serif mono", "ДЖИЙЛЦЧШЩЪЫЬЭЮЯЂЉЊђћҐҕҗҘқңҤҪҲӁӇӑӔӖӘӚӞӠӮӴӶӸ"),
    Block("armenian", "alphabets", "sans serif mono", "ԲԳԴԵԶԷԸԹԺԻԽԾԿՀՃՄՆՇՉՊՌՎՐՒՔՖաթխկմնչպջվփֆև"),
    Block("georgian", "alphabets", "sans serif", "ბდეთკლმნრფქჭჯჰჱჲჴჶჷჹႡႢႥႦႧႨႩႪႫႬႮႰႵႸႼႽႾႿჁჃჄჅ"),
    Block("tifinagh", "alphabets", "sans-upright", "ⴳⴺⴼⴽⴿⵃⵄⵆⵇⵈⵋⵌⵎⵐⵒⵓⵕⵖⵘⵚⵛⵜⵞⵢⵣⵤ"),
    Block("old-italic", "alphabets", "sans", "𐌂𐌄𐌊𐌋𐌌𐌍𐌎𐌐𐌑𐌒𐌔𐌖𐌙𐌚𐌝"),
    Block("ogham", "alphabets", "sans-upright", "ᚁᚂᚃᚄᚆᚇᚈᚉᚌᚍᚎᚑᚒᚓᚕᚖᚗᚘᚙᚚ"),
    Block("phonetic", "alphabets", "sans serif mono", "ɕɗɚɠɣɧɬɮɱɲɶɹɻɾɿʁʂʆʉʍʐʑʖʞʣʤʦʨʩʫʬʭ"),
    Block("hebrew", "right-to-left", "sans", "אבגדהזטךכלםמעףפץצקרשתﭏ"),
    Block("arabic", "right-to-left", "sans-upright mono-upright", "ءؤئبةتثجخدذرزسشضطعغفقكلمنوىيٹٻڑڤکگھ"),
    Block("nko", "right-to-left", "sans-upright", "߁߂߃߄߅߆߇߉ߌߍߎߏߐߑߒߓߔߖߗߘߙߚߛߜߝߞߟߢߣߤ"),
    Block("canadian-syllabics", "syllabics", "sans", "ᐂᐅᐆᐊᐋᐌᐘᐠᐣᐫᐼᑁᑇᑖᑗᑘᑠᑪᑰᑴᑸᒓᒚᒡᓀᓔᓚᓝᓞᓟᓢᓥᓮᓷᓸᓹᔒᔔᔚᔹᕌᕾᖁᖏᖖᖢᖤ"),
    Block("lao", "syllabics", "sans", "ຂຄງຈຊຍຕຖທນປຜຝພມຣລວສຮຯະາຳຽແໂໃ໑໒໓໔໖໗໘ໜ"),
    Block("digits", "numerals", "sans serif mono stix", "0123456789"),
    Block("arabic-digits", "numerals", "sans-upright mono-upright", "٢٣٤٦٨٩۴۵۶"),
    Block("double-struck", "letterlike", "sans", "𝔸𝔹𝔻𝔼𝔽𝕀𝕁𝕂𝕃𝕄𝕆𝕌𝕍𝕎𝕏𝕐𝕒𝕓𝕔𝕕𝕗𝕘𝕚𝕜𝕝𝕟𝕡𝕤𝕥𝕦𝕪𝕫ℍℕℙℝ"),
    Block("currency", "letterlike", "sans mono", "$¢£¥₠₡₢₧₨₪₫€₯₰₲₴₸₹"),
    Block("punctuation", "letterlike", "sans serif", "?%*()[{}§¶©®‡‰‱⁂⁇⁈⁉⁋"),
    Block("arrows", "technical", "sans serif", "←→↓↖↗↘↙↜↝↥↯↰↱↲↳↴↵↶↷↸↹↺↻↼↽↾⇃⇄⇅⇋⇑⇖⇗⇘⇙⇱⇲⇵⇶⟰⟱⟴⥀⬏"),
    Block("operators", "technical", "sans stix-upright", "×÷=±¬<>∄∈∋∐∓√∝∠∴∵∹∿≅≏≙≤≿⊁⊃⊄⊆⊋⊓⊗⊢⊧⊪⊰⊱⊵⊶⊻⋜⋝⋮⋰⋱⩪"),
    Block("apl", "technical", "mono", "⌶⌸⌹⌼⌿⍁⍂⍊⍋⍌⍍⍎⍐⍓⍔⍘⍚⍛⍜⍝⍡⍢⍣⍤⍥⍦⍧⍨⍩⍪⍮⍱⍲⍶⍷⍹"),
    Block("box-drawing", "geometry", "sans serif mono", "┌┤┴╒╓╔╕╖╗╘╙╚╛╜╝╟╢╥╦╧╨╩╫╰╱╲"),
    Block("shapes", "geometry", "sans serif mono", "□▭▯▲▶▷▼▽◀◁◇◈◐◑◒◓◜◝◟◠◡◢◣◤◥◬◴◸◹◺◿⬖⬗⬘⬙░▚▞"),
    Block("braille", "patterns", "sans serif", "⠃⠊⠍⠎⠑⠕⠛⠜⠟⠣⠥⠩⠪⠬⠱⡃⡅⡉⡊⡑⡜⡡⡨⡯⡹⢅⢉⢊⢌⢑⢟⢣⢺⣁⣈⣵"),
    Block("tetragrams", "patterns", "sans", "𝌆𝌋𝌓𝌗𝌚𝌞𝌨𝌩𝌬𝌴𝌽𝌾𝍂𝍈𝍎𝍓𝍕𝍖"),
    Block("dingbats", "pictures", "sans mono-upright", "✁✂✃✆✇✈✉✌✍✎✏✐✓✗✙✜✞✠✡✦✧✩✰✳✾✿❀❁❂❉❝❞❡❣❤❥❦❧"),
    Block("symbols", "pictures", "sans", "☂☃☄☈☉☊☘☙☚☜☝☞☟☡☢☦☪☭☯☼☽☾☿♃♄♈♉♊♋♌♍♎♑♓♔♗♘♡♤♨♩♫♬♭♮⚂⚐⚔⚠⚡⚤⚯⚳⚶"),
    Block("faces", "pictures", "sans", "😀😂😅😇😈😋😎😑😓😗😘😛😦😨😭😰😱😳😴😶😸😻😽"),
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
