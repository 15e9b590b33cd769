"""Measurements for the tests of admission: one set that admits everything, and any at all for properties."""

from dataclasses import replace

from hypothesis import strategies as st

from worldmove.move.measured import Final, Fixed, Measured

FAST = Measured(
    num_bytes=20_000_000,
    source_hash_rate=10e9,
    path_rate=4e9,
    destination_hash_rate=8e9,
    horizon_s=0.250,
    row_rate=10e9,
    copy_rate=20e9,
    dirty_bytes=12_000_000,
    new_bytes=6_000_000,
    further_bytes=0,
    final=Final(num_bytes=6_000_000, window_s=0.02, last_bytes=500_000),
    period_s=0.5,
    block_s=0.1,
    utilisation=0.2,
    num_slots_free=2,
    num_source_slots_free=1,
    fixed=Fixed(num_moves=1),
)

FIXED = (
    Fixed(),
    Fixed(freeze_s=0.02, install_s=0.01, commit_s=0.004, num_moves=8),
    Fixed(boundary_s=-0.003, land_s=0.001, verify_s=0.002, halt_s=-0.004, spread_s=0.003, num_bytes=1 << 20),
    Fixed(boundary_s=0.02, reconcile_s=0.01, halt_s=0.02, left_bytes=1 << 19, rest_s=0.1, num_bytes=1 << 20),
    Fixed(reconcile_s=0.0, left_bytes=1 << 19, rest_s=0.1, is_rested=True),
)

rates = st.floats(1e6, 1e12)
seconds = st.floats(1e-4, 100.0)


@st.composite
def anything(draw: st.DrawFn) -> Measured:
    """Measurements of any size, all of them there."""
    num_bytes = draw(st.integers(1 << 10, 1 << 33))
    new_bytes = draw(st.integers(0, num_bytes))
    followed = draw(st.integers(0, new_bytes))
    final_bytes = draw(st.integers(0, new_bytes - followed))
    return Measured(
        num_bytes=num_bytes,
        source_hash_rate=draw(rates),
        path_rate=draw(rates),
        destination_hash_rate=draw(rates),
        horizon_s=draw(seconds),
        row_rate=draw(rates),
        copy_rate=draw(rates),
        dirty_bytes=draw(st.integers(new_bytes, num_bytes)),
        new_bytes=new_bytes,
        further_bytes=draw(st.none() | st.integers(0, num_bytes)),
        final=Final(
            num_bytes=final_bytes,
            window_s=draw(st.floats(0.0, 1.0)),
            last_bytes=draw(st.integers(0, final_bytes)),
            followed_bytes=followed,
        ),
        period_s=draw(st.floats(0.01, 2.0)),
        block_s=draw(st.floats(0.001, 2.0)),
        utilisation=draw(st.floats(0.0, 1.5)),
        patience_s=draw(st.sampled_from([float("inf"), 1.0, 30.0, 300.0])),
        num_slots_free=draw(st.integers(0, 3)),
        num_source_slots_free=draw(st.integers(0, 3)),
        fixed=draw(st.sampled_from(FIXED)),
    )


def roomy(measured: Measured) -> Measured:
    """The same with free places: slots stand in the way whatever the rates."""
    return replace(measured, num_slots_free=1, num_source_slots_free=1)
