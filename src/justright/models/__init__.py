"""What is trained on top of a backbone, its moving average, and how rates and temperatures move."""

from justright.models.heads import ProjectionHead, PrototypeClassifier, cosine_logits
from justright.models.schedules import learning_rate, teacher_momentum, teacher_temperature
from justright.models.teacher import MeanTeacher

__all__ = [
    "MeanTeacher",
    "ProjectionHead",
    "PrototypeClassifier",
    "cosine_logits",
    "learning_rate",
    "teacher_momentum",
    "teacher_temperature",
]
