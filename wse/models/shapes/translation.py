"""Encoder and decoder in closed form: T5 and the first transformer.

A block of the decoder has a second attention whose keys and values are the encoder's output:
4 h i parameters and one norm more, i numbers of all heads.
"""

from dataclasses import replace
from typing import Any

from wse.models.shapes.transformer import Transformer, attention, blocks, lookup, norms
from wse.models.shapes.workload import Layer, Workload


def translation(
    name: str,
    encoder: Transformer,
    decoder: Transformer,
    *,
    one_embedding: bool = True,
) -> Workload:
    """An encoder, a decoder that reads it, and a head over the decoder's words.

    Args:
        name: what tables call it.
        encoder: its blocks, words and positions.
        decoder: as much; `share_embedding_weights` says that the head is its embedding.
        one_embedding: both look words up in one table.

    Raises:
        ValueError: halves of different hidden size, or of different words for one table.

    >>> half = dict(filter_size=2048, position_embedding_type="relative", position_parameters=256,
    ...     norm="rms", use_projection_bias_in_attention=False, use_ffn_bias_in_attention=False,
    ...     use_ffn_bias=False, share_embedding_weights=True)
    >>> half = Transformer(512, 6, 8, 32128, 512, **half)
    >>> translation("T5-small", half, half).parameters
    60506624
    """
    h = encoder.hidden_size
    if decoder.hidden_size != h:
        raise ValueError(
            f"hidden_size of the decoder is {decoder.hidden_size}; it must be the encoder's {h}: "
            "correct one of them"
        )
    if one_embedding and decoder.vocab_size != encoder.vocab_size:
        raise ValueError(
            f"vocab_size of the decoder is {decoder.vocab_size}; one table serves both where it is "
            f"the encoder's {encoder.vocab_size}: correct it, or share no embedding"
        )
    read = encoder.max_sequence_length
    count = (encoder.vocab_size + encoder.positions) * h + encoder.position_parameters
    layers = [lookup("encoder_embedding", encoder, count)]
    for i in range(encoder.num_hidden_layers):
        layers += blocks(encoder, i, "encoder")
    layers += norms("encoder_norm", encoder, encoder.norm_parameters * encoder.ends_normed)
    rows = decoder.positions + (0 if one_embedding else decoder.vocab_size)
    layers.append(lookup("decoder_embedding", decoder, rows * h + decoder.position_parameters))
    for i in range(decoder.num_hidden_layers):
        own = blocks(decoder, i, "decoder")
        cross = attention(decoder, f"decoder_{i}", "cross_", read, read)
        layers += [*own[:3], *cross, *own[3:]]
    layers += norms("decoder_norm", decoder, decoder.norm_parameters * decoder.ends_normed)
    s, v = decoder.max_sequence_length, decoder.vocab_size
    bias = v * decoder.use_bias_in_output
    common: dict[str, Any] = {"features": h, "sparsifiable": False}
    if decoder.share_embedding_weights and bias:
        layers.append(Layer("bias", s * v, s * v, bias, "bias", multiplies=0, kept=0, **common))
        bias = 0
    head = Layer("head", s * h, s * v, v * h + bias, multiplies=s * h * v, kept=s * h, **common)
    layers.append(replace(head, shared=decoder.share_embedding_weights))
    tokens = encoder.max_sequence_length
    origin = "pair", (encoder, decoder, one_embedding)
    return Workload(name, tuple(layers), tokens + s, s, tokens=tokens, origin=origin)
