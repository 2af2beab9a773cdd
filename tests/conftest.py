"""Settings for all tests."""

import os

from hypothesis import HealthCheck, Phase, settings

# Everyday runs are the same each time; HYPOTHESIS_PROFILE=explore asks for many other examples.
settings.register_profile(
    "everyday",
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate, Phase.target],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("explore", parent=settings.get_profile("everyday"), derandomize=False, max_examples=2_000)
settings.register_profile("shrink", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "everyday"))
