"""What a Hugging Face configuration says: each key by its type, and which keys were asked for."""

import re
from collections.abc import Mapping
from typing import Any, cast

from wse import _document
from wse._document import short, typed
from wse._numbers import positive
from wse.models.doors.decoders import one_of

Said = dict[str, Any]
NULL = "write null if there is none"
KINDS = {int: "int_type", bool: "bool_type", str: "string_type"}
COMMON = {  # their word, and ours
    "hidden_size": "hidden_size",
    "num_hidden_layers": "num_hidden_layers",
    "num_attention_heads": "num_heads",
    "intermediate_size": "filter_size",
    "vocab_size": "vocab_size",
    "max_position_embeddings": "max_position_embeddings",
}
BESIDE = {  # words of ours in errors that no table renames
    "num_kv_heads": "num_key_value_heads",
    "num_kv_groups": "num_key_value_heads",
    "max_sequence_length": "sequence",
    "attention_inner_dim": "head_dim times the heads",
    "experts_per_token": "num_experts_per_tok",
    "top_k": "num_experts_per_tok",
    "num_experts": "num_local_experts",
}


class Told:
    """A configuration, which answers by key and type and keeps what was asked.

    Args:
        said: what is in the file.
        name: what errors call the file.
    """

    def __init__(self, said: Mapping[str, Any], name: str) -> None:
        self.said = {key: value for key, value in said.items() if value is not None}
        self.name, self.null = name, said.keys() - self.said.keys()
        self.asked = ["model_type", "architectures", "torch_dtype", "dtype"]
        self.names: dict[str, str] = {**BESIDE}
        self.cautions: list[str] = []

    def whole(self, key: str, usual: int | None = None) -> Any:
        """A whole number, or what is usual."""
        return self._typed(key, int, usual)

    def count(self, key: str, usual: int | None = None) -> Any:
        """A positive whole number, or what is usual; null leaves it out, 0 is no way to do so."""
        found = self.whole(key, None if key in self.null else usual)
        return found if found is None else positive(f"{key} of {self.name}", found, NULL)

    def sure(self, key: str, usual: int) -> int:
        """A positive whole number that null does not leave out.

        Raises:
            ValueError: it is null.
        """
        if (found := self.count(key, usual)) is None:
            raise ValueError(f"{key} of {self.name} is null; it must be a number: write one")
        return found

    def flag(self, key: str, usual: bool) -> bool:
        """True or false."""
        return self._typed(key, bool, usual)

    def word(self, key: str, usual: str | None, known: tuple[str, ...] = ()) -> Any:
        """Text, one of those that are known if these are given."""
        found = self._typed(key, str, usual)
        return one_of(key, found, known) if known and found is not None else found

    def _typed(self, key: str, kind: type, usual: Any) -> Any:
        self.asked.append(key)
        found = self.said.get(key, usual)
        if found is not None and type(found) is not kind:
            rule = typed.RULES[KINDS[kind]]
            raise ValueError(f"{key} of {self.name} is {short(found)}; it must {rule}")
        return found

    def sizes(self, names: Mapping[str, str], **usual: int) -> Said:
        """Sizes under our words; all must be said but those that one class alone has.

        Raises:
            ValueError: some are missing, under the file's names for them.
        """
        self.names |= {ours: theirs for theirs, ours in names.items() if ours != theirs}
        made = {ours: self.whole(key, usual.get(key)) for key, ours in names.items()}
        if missing := ", ".join(key for key, ours in names.items() if made[ours] is None):
            raise ValueError(
                f"{self.name} lacks {missing}; models of type {self.said['model_type']} differ in "
                "that, so it must be given: add what is missing"
            )
        return made

    def either(self, *keys: str) -> str:
        """The one of several names of a size that the file has; the first where it has none.

        Raises:
            ValueError: it has two, of different sizes.
        """
        found = [key for key in keys if key in self.said]
        self.asked += found
        if len({str(self.said[key]) for key in found}) > 1:
            raise ValueError(
                f"{found[0]} of {self.name} is {short(self.said[found[0]])}, {found[1]} "
                f"{short(self.said[found[1]])}; both say one size: leave one of them out"
            )
        return (found or keys)[0]

    def only(self, key: str, usual: bool, why: str) -> None:
        """Refuse a flag that makes a model which is not counted."""
        if self.flag(key, usual) is not usual:
            raise ValueError(
                f"{key} of {self.name} is {not usual}; {why}: write {str(usual).lower()} to have "
                "the rest"
            )

    def heads(self, said: Said, kv: Any, width: Any = None) -> Said:
        """Words for heads of keys and values, and for a width that is not hidden size by heads."""
        made: Said = {}
        if kv is not None:
            made["attention_module"] = "multiquery_attention"
            made["extra_attention_params"] = {"num_kv_groups": kv}
        if width is not None:
            made["attention_inner_dim"] = width * said["num_heads"]
        return made

    def near(self, layers: int) -> list[bool] | None:
        """Which blocks have a window, where the file lists them.

        Raises:
            ValueError: the list is of another number of blocks.
        """
        kinds: Any = self.said.get("layer_types")
        if not isinstance(kinds, list):  # which is refused elsewhere
            return None
        found = [one == "sliding_attention" for one in cast("list[Any]", kinds)]
        if len(found) != layers:
            raise ValueError(
                f"layer_types of {self.name} lists {len(found)} layers, num_hidden_layers is "
                f"{layers}; there must be one for each: correct one of them"
            )
        return found

    def labels(self) -> int:
        """How many outputs a classifier has."""
        self.asked.append("id2label")
        names, count = self.said.get("id2label"), self.whole("num_labels", 2)
        return len(_document.mapping(names, "id2label")) if names is not None else count

    @property
    def architecture(self) -> str:
        """The first class that the file names; empty where there is none."""
        found = self.said.get("architectures") or ""
        first = cast("list[Any]", found)[0] if isinstance(found, list) else found
        if not isinstance(first, str):
            raise ValueError(
                f"architectures of {self.name} is {short(found)}; it must be a list of names: "
                'write one such as ["LlamaForCausalLM"]'
            )
        return first

    @property
    def head(self) -> str:
        """What the name of the class ends in, after "For"; empty where no class is named."""
        first = self.architecture
        ends = [end for end in ("LMHeadModel", "Model") if first.endswith(end)]
        return first.partition("For")[2] or (ends[0] if ends else first)

    def headed(self, known: tuple[str, ...]) -> str:
        """The head, which is among those that are counted; empty where no class is named.

        Raises:
            ValueError: another head, or none.
        """
        head = self.head
        if head and head not in known:
            bare = "which has no head and so no loss to train"
            why = bare if head == "Model" else "of which the head is not counted"
            raise ValueError(
                f"{self.name} is {short(self.architecture)}, {why}: write architectures: "
                f'["...For{known[0]}"] to have the model with that head'
            )
        return head

    def theirs(self, message: str) -> str:
        """An error about words of ours, with the file's in their place."""
        words = "|".join(map(re.escape, self.names))
        return re.sub(
            rf"\b(?:model\.)?(?:moe\.)?({words})\b", lambda found: self.names[found[1]], message
        ).replace("model.", "")
