"""Images and their labels: opening, splitting, pooling."""

from justright.data.archive import open_archive
from justright.data.catalog.glyphs import glyph_set
from justright.data.class_split import ClassSplit, first_half, graded, random_half, read_class_split
from justright.data.folder import open_folder
from justright.data.image_set import ImageSet
from justright.data.manifest import open_manifest
from justright.data.objects import from_dataset
from justright.data.opening import open_images
from justright.data.pool import Origin, Pool, merge_pool
from justright.data.splits import Split, gcd_split
from justright.data.truth import Truth
