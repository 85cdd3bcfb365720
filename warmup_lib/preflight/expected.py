"""What a model's config says its tensors are, for the families whose tensors are known here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

Shape = tuple[int, ...]

HEAD = "lm_head.weight"
TABLES = ("model.embed_tokens.weight", HEAD)
"""The tensors with one row a word of the vocabulary."""
_MOST_LAYERS = 10_000
"""Far more than any model has: each adds about ten shapes to what is compared."""
_LARGEST_SIZE = 2**31 - 1


@dataclass(frozen=True)
class Family:
    """What sets a family's tensors apart, and what its config means where it is silent.

    Attributes:
        qkv_bias: Bias of the query, key and value projections; None: as `attention_bias` says.
        output_bias: `attention_bias` is about the output projection too.
        mlp_bias: The config may ask for biases in the feed-forward layers.
        head_norms: Queries and keys are normalised head by head.
        four_norms: Normalised before and after both attention and feed-forward.
        tied: Input and output embeddings are one where the config does not say.
        head_dim: Size of a head where the config does not say; None: hidden size / heads.
        own_keys: Each head has keys of its own where the config does not say.
    """

    qkv_bias: bool | None = None
    output_bias: bool = True
    mlp_bias: bool = False
    head_norms: bool = False
    four_norms: bool = False
    tied: bool = False
    head_dim: int | None = None
    own_keys: bool = False


FAMILIES = {
    "LlamaForCausalLM": Family(mlp_bias=True, own_keys=True),
    "MistralForCausalLM": Family(qkv_bias=False, output_bias=False),
    "Qwen2ForCausalLM": Family(qkv_bias=True, output_bias=False),
    "Qwen3ForCausalLM": Family(head_norms=True, head_dim=128),
    "GemmaForCausalLM": Family(tied=True, head_dim=256),
    "Gemma2ForCausalLM": Family(four_norms=True, tied=True, head_dim=256),
    "Gemma3ForCausalLM": Family(head_norms=True, four_norms=True, tied=True, head_dim=256),
}


@dataclass(frozen=True)
class Sizes:
    """The sizes that all shapes follow from: of a whole model, or of one rank's part."""

    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int

    def part(self, ranks: int) -> Sizes:
        """Return the sizes of one of so many equal parts, rounded down where there are none.

        With more ranks than key heads, each rank has one of these.
        """
        return replace(
            self,
            heads=self.heads // ranks,
            kv_heads=max(self.kv_heads // ranks, 1),
            intermediate=self.intermediate // ranks,
            vocabulary=self.vocabulary // ranks,
        )


class NotKnown(Exception):
    """The shapes of this model can't be told; the message says why."""


class NoSize(NotKnown):
    """A size is given, but as something that no model can have; the message says what."""


class Model:
    """A model as its config has it.

    Args:
        config: The content of config.json.

    Raises:
        NotKnown: It is of a family whose tensors are not known here, or gives a size not.
        NoSize: It gives a size that is no whole number above 0, or too large for any model.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config
        self._family = _family(config)
        heads, hidden = self._size("num_attention_heads"), self._size("hidden_size")
        tied = config.get("tie_word_embeddings")
        self.tied = self._family.tied if tied is None else bool(tied)
        self.sizes = Sizes(
            hidden=hidden,
            intermediate=self._size("intermediate_size"),
            layers=self._size("num_hidden_layers"),
            heads=heads,
            kv_heads=self._size("num_key_value_heads", heads if self._family.own_keys else None),
            head_dim=self._size("head_dim", self._family.head_dim or hidden // heads),
            vocabulary=self._size("vocab_size"),
        )

    def tensors(self, sizes: Sizes | None = None, *, fused: bool = False) -> dict[str, Shape]:
        """Return the shape of each tensor by name.

        Args:
            sizes: Those of one rank's part; None: of the whole.
            fused: As a host holds them, the projections of one input in one tensor.
        """
        sizes = sizes or self.sizes
        table = (sizes.vocabulary, sizes.hidden)
        shapes: dict[str, Shape] = dict.fromkeys(TABLES[: 1 if self.tied else 2], table)
        shapes["model.norm.weight"] = (sizes.hidden,)
        layer = dict(self._layer(sizes, fused=fused))
        for number in range(sizes.layers):
            shapes |= {f"model.layers.{number}.{name}": shape for name, shape in layer.items()}
        return shapes

    def _layer(self, sizes: Sizes, *, fused: bool) -> Iterator[tuple[str, Shape]]:
        mlp_bias = self._family.mlp_bias and self._asks("mlp_bias")
        inner = {"gate_proj": sizes.intermediate, "up_proj": sizes.intermediate}
        if fused:
            inner = {"gate_up_proj": 2 * sizes.intermediate}
        for name, rows in inner.items():
            yield from _linear(f"mlp.{name}", rows, sizes.hidden, bias=mlp_bias)
        yield from _linear("mlp.down_proj", sizes.hidden, sizes.intermediate, bias=mlp_bias)
        yield from self._attention(sizes, fused=fused)
        norms = ["input_layernorm", "post_attention_layernorm"]
        norms += ["pre_feedforward_layernorm", "post_feedforward_layernorm"] * (
            self._family.four_norms
        )
        for name in norms:
            yield f"{name}.weight", (sizes.hidden,)

    def _attention(self, sizes: Sizes, *, fused: bool) -> Iterator[tuple[str, Shape]]:
        queries, keys = sizes.heads * sizes.head_dim, sizes.kv_heads * sizes.head_dim
        inner = {"q_proj": queries, "k_proj": keys, "v_proj": keys}
        if fused:
            inner = {"qkv_proj": queries + 2 * keys}
        asked, always = self._asks("attention_bias"), self._family.qkv_bias
        for name, rows in inner.items():
            bias = asked if always is None else always
            yield from _linear(f"self_attn.{name}", rows, sizes.hidden, bias=bias)
        bias = asked and self._family.output_bias
        yield from _linear("self_attn.o_proj", sizes.hidden, queries, bias=bias)
        if self._family.head_norms:
            for name in ("q_norm", "k_norm"):
                yield f"self_attn.{name}.weight", (sizes.head_dim,)

    def _asks(self, name: str) -> bool:
        return bool(self._config.get(name, False))

    def _size(self, name: str, default: int | None = None) -> int:
        value = self._config.get(name)
        if value is None:
            value = default
            if not value:
                raise NotKnown(f"config.json has no usable {name}")
        most = _MOST_LAYERS if name == "num_hidden_layers" else _LARGEST_SIZE
        # `True` is an int as well.
        if type(value) is not int or not 0 < value <= most:
            raise NoSize(f"config.json has no usable {name}, which is from 1 to {most:,}")
        return value


def _family(config: Mapping[str, Any]) -> Family:
    architectures = config.get("architectures")
    named = architectures[0] if isinstance(architectures, list) and architectures else None
    if not isinstance(named, str) or named not in FAMILIES:
        names = (name for name in (named, config.get("model_type")) if isinstance(name, str))
        kind = next(filter(None, names), "a model that names no architecture")
        raise NotKnown(f"the tensors of {kind} are not known here")
    return FAMILIES[named]


def _linear(name: str, rows: int, columns: int, *, bias: bool) -> Iterator[tuple[str, Shape]]:
    yield f"{name}.weight", (rows, columns)
    if bias:
        yield f"{name}.bias", (rows,)
