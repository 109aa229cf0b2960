"""Public models of PyTorch as JAX: outputs and gradients are PyTorch's own."""

from importlib.util import find_spec

import pytest

torch = pytest.importorskip("torch", reason="the extra torch is not installed: make torch runs it")
if find_spec("timm") is None:  # not imported: torchvision may need help first
    pytest.skip("the extra torch is not installed: make torch", allow_module_level=True)
from validation.wse.as_pytorch import assert_as_pytorch  # noqa: E402
from validation.wse.torch_models import MODELS  # noqa: E402

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
    assert len(MODELS) == 30
