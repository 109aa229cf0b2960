"""Public models of PyTorch as JAX: outputs and gradients are PyTorch's own."""

from importlib.util import find_spec

import jax
import numpy as np
import pytest

import wse

torch = pytest.importorskip("torch", reason="the extra torch is not installed: make torch runs it")
if find_spec("timm") is None:  # not imported: torchvision may need help first
    pytest.skip("the extra torch is not installed: make torch", allow_module_level=True)
from validation.wse.as_pytorch import AllDouble, assert_as_pytorch  # noqa: E402
from validation.wse.torch_models import MODELS, TEXT, mixture, tokens, told  # noqa: E402

pytestmark = [pytest.mark.validation, pytest.mark.filterwarnings("ignore")]
ALWAYS = 10
LATE = [pytest.param(name, marks=pytest.mark.contract) for name in [*MODELS][ALWAYS:]]


@pytest.mark.parametrize("double", [True, False], ids=["float64", "float32"])
@pytest.mark.parametrize("name", [*[*MODELS][:ALWAYS], *LATE])
def test_outputs_and_gradients_are_those_of_pytorch(name: str, double: bool) -> None:
    torch.manual_seed(0)
    module, inputs = MODELS[name]()
    assert_as_pytorch(module.eval(), inputs, double)


def test_there_are_thirty() -> None:
    assert len(MODELS) >= 30


def test_products_grouped_by_expert_are_those_of_batches() -> None:
    torch.manual_seed(0)
    module, inputs = mixture("grouped_mm")
    assert_as_pytorch(module.eval(), inputs, double=False)
    module = module.double()
    with jax.enable_x64(True), AllDouble():
        made = wse.from_torch(module, inputs)
        found = jax.jit(made.apply)(dict(made.params), *(x.numpy() for x in inputs))
        module.set_experts_implementation("batched_mm")
        wanted = module(*inputs).logits.detach().numpy()
    assert np.abs(np.asarray(jax.tree.leaves(found)[0]) - wanted).max() < 1e-8 * wanted.max()


def test_a_model_that_branches_on_values_is_refused_in_one_line() -> None:
    module, inputs = told("Longformer.Model", tokens, **TEXT, attention_window=4)()
    with pytest.raises(ValueError, match=r"LongformerModel does not export .*torch.where") as found:
        wse.from_torch(module.eval(), inputs)
    assert "\n" not in str(found.value)
    module, inputs = mixture("eager")
    with pytest.raises(ValueError, match="MixtralForCausalLM does not export"):
        wse.from_torch(module.eval(), inputs)
