from bench.figures import PAGE, by_machine
from bench.figures_text import page
from bench.markdown import paragraph


def test_the_page_of_figures_is_what_the_results_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(by_machine())


def test_without_results_the_page_says_so() -> None:
    assert "Nothing was measured" in page({})


def test_code_is_not_broken_over_lines() -> None:
    words = "word " * 23
    assert paragraph(words + "`make bench`.").splitlines() == [words.strip(), "`make bench`."]
