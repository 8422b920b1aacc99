"""Mail that was saved as text."""

import pytest

from tercet.ingest.texts.mail import subject_of


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("From: Ann <a@example.org>\nDate: today\nSubject: Tea on\n  Friday\n\nHot.\n", "Tea on Friday"),
        ("To: b@example.org\nSubject: =?utf-8?b?64W57LCo?=\n\nHot.", "녹차"),
        ("To: b@example.org\nSubject: =?nothing?b?64W57LCo?=\n\nHot.", "=?nothing?b?64W57LCo?="),
        ("Subject: Tea\n\nHot.", None),
        ("To: you\n\nSubject: Tea", None),
        ("To: you\nSubject:\n\nTea", None),
        ("Dear Ann,\nFrom: here\nSubject: Tea\n\nHot.", None),
    ],
)
def test_the_subject_of_a_mail_is_known(text: str, subject: str | None) -> None:
    assert subject_of(text) == subject
