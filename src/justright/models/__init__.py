"""What is trained on top of a backbone, its moving average, and how rates and temperatures move."""

from justright.models.classifier import PrototypeClassifier
from justright.models.cosine import cosine_logits
from justright.models.projector import ProjectionHead
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
