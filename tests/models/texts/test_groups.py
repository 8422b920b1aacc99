"""Groups of texts: about so many tokens each, and none of nothing."""

from tercet.models.texts.groups import estimated_tokens, groups


def test_groups_hold_about_so_many_tokens() -> None:
    texts = ["a" * 30] * 10  # 12 estimated tokens each
    assert [len(group) for group in groups(texts, str, 30)] == [3, 3, 3, 1]
    assert [len(group) for group in groups(["x" * 10_000, "y"], str, 30)] == [1, 1]
    assert list(groups([], str, 30)) == []
    assert estimated_tokens("") == 2
    assert estimated_tokens("빵을 굽다") == 2 + 13 // 3
    assert estimated_tokens("\ud800" * 3) == 2 + 3
