"""A generator of the GPU that a captured graph draws from: its state at a boundary is all that its next draws need."""

from typing import Any

import pytest
import torch


@pytest.fixture
def drawing() -> tuple[torch.Generator, torch.cuda.CUDAGraph, torch.Tensor]:
    """A generator, a graph that draws from it, and where the numbers come."""
    generator = torch.Generator("cuda").manual_seed(7)
    numbers, graph, stream = torch.empty(10_000, device="cuda"), torch.cuda.CUDAGraph(), torch.cuda.Stream()
    graph.register_generator_state(generator)
    with torch.cuda.stream(stream):
        numbers.normal_(generator=generator)  # what a first draw makes ready cannot be captured
        stream.synchronize()
        with torch.cuda.graph(graph, stream=stream):
            numbers.normal_(generator=generator)
    torch.cuda.synchronize()
    return generator, graph, numbers


def drawn(generator: torch.Generator) -> torch.Tensor:
    return torch.empty(10_000, device="cuda").normal_(generator=generator)


def test_a_loaded_generator_draws_what_the_graphs_next_replay_does(kit: Any, drawing: Any) -> None:
    generator, graph, numbers = drawing
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    state = kit.save_generator(generator)
    again = kit.load_generator(state)
    assert kit.save_generator(again) == state
    for _ in range(2):
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(drawn(again), numbers)
    assert kit.save_generator(again) == kit.save_generator(generator)


def test_a_graph_goes_on_from_a_state_that_its_generator_is_set_to(kit: Any, drawing: Any) -> None:
    generator, graph, numbers = drawing
    other = torch.Generator("cuda").manual_seed(99)
    drawn(other)
    generator.set_state(other.get_state())
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(drawn(other), numbers)
    assert kit.save_generator(other) == kit.save_generator(generator)
