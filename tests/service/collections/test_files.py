from pathlib import Path

from tercet.service.collections.files import ReadFiles


def test_a_file_is_read_again_only_where_it_is_another(tmp_path: Path) -> None:
    known, path, read = ReadFiles[str](), tmp_path / "effort.json", []

    def content(path: Path) -> str:
        read.append(path)
        return path.read_text()

    path.write_text("first")
    assert [known.of("demo", str(path), content) for _ in range(2)] == ["first"] * 2
    assert len(read) == 1
    path.write_text("second one")
    assert known.of("demo", str(path), content) == "second one"
    known.forget("demo")
    assert known.of("demo", str(path), content) == "second one"
    assert len(read) == 3
    path.unlink()
    assert known.of("demo", str(path), content) is None


def test_what_is_removed_while_it_is_read_is_not_there(tmp_path: Path) -> None:
    known, path = ReadFiles[str](), tmp_path / "effort.json"
    path.write_text("{}")

    def removed(path: Path) -> str:
        path.unlink()
        return path.read_text()

    assert known.of("demo", str(path), removed) is None
