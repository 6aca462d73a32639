"""Images and their labels: opening, splitting, pooling."""

from justright.data.catalog.glyphs import glyph_set
from justright.data.folder import open_archive, open_folder
from justright.data.image_set import ImageSet
from justright.data.manifest import open_manifest
from justright.data.objects import from_dataset
from justright.data.opening import open_images
from justright.data.pool import Origin, Pool, merge_pool
from justright.data.splits import ClassSplit, Split, Truth, first_half, gcd_split, graded, random_half, read_class_split
