"""What a transformer computes and how it begins, beyond what can be counted."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Manner:
    """Constants and chances of a transformer, its first weights, and the weight of its loss.

    Attributes:
        norm_epsilon: what is added to a variance.
        norm_first: norms stand before the halves of a block, not behind what both halves give.
        pooler: the function of what is made of the pooled token.
        transform: of the dense layer before the head.
        rope_base: of the angles of rotary positions.
        rope_width: features of a head that are turned; 0: all.
        scores_by_width: scores are divided by the width of a head, not by its root (muP).
        scores_plain: scores are not divided (T5).
        bucket_reach: of relative positions, the distance from where on all are one bucket.
        embedding_scale: factor of what is embedded.
        logit_scale: factor of the logits of words.
        embedding_dropout: chance by which an embedded number is left out, in training.
        attention_dropout: by which a token does not see another.
        dropout: by which a number is left out of what either half of a block gives.
        inner_dropout: by which one is left out between the products after attention.
        last_dropout: by which one is left out of what leaves a stack.
        first_std: spread of the first weights of products.
        embedding_std: of embeddings.
        output_std: of the products that end the halves of a block; 0: that of the others, divided
            by the root of twice the blocks.
        down_std: of the second of these alone; 0: as the first.
        query_std: of what makes the queries; 0: as the others.
        layer_scale: the first of the trained factors of what either half gives.
        token_weight: the loss is the sum over tokens times this, divided by the batch; 0: the mean
            over the tokens that have a label.
        sentence_weight: factor of the loss of the pooled token.
        rates: factors of the learning rate of a block's products: of attention and of what enters
            after it, and of what leaves.
    """

    norm_epsilon: float = 1e-5
    norm_first: bool = True
    pooler: str = "tanh"  # sourced: Devlin et al., BERT
    transform: str = "gelu"
    rope_base: float = 10_000.0
    rope_width: int = 0
    scores_by_width: bool = False
    scores_plain: bool = False
    bucket_reach: int = 128  # sourced: Raffel et al., T5; the Model Zoo
    embedding_scale: float = 1.0
    logit_scale: float = 1.0
    embedding_dropout: float = 0.0
    attention_dropout: float = 0.0
    dropout: float = 0.0
    inner_dropout: float = 0.0
    last_dropout: float = 0.0
    first_std: float = 0.02  # sourced: Radford et al., GPT-2; Devlin et al., BERT
    embedding_std: float = 0.02
    output_std: float = 0.0
    down_std: float = 0.0
    query_std: float = 0.0
    layer_scale: float = 1.0
    token_weight: float = 0.0
    sentence_weight: float = 1.0
    rates: tuple[float, float] = (1.0, 1.0)

    @property
    def drops(self) -> bool:
        """Whether chance has a part in training."""
        return any(value for name, value in vars(self).items() if name.endswith("dropout"))
