"""Markdown with JavaScript: its imports and exports are no text."""

from tercet.ingest.texts.mdx import without_modules

PAGE = """import Tabs from '@theme/Tabs';
import {
  Steps,
} from "../steps"
import './tea.css'

export const hours = {
  open: 9,

  closed: 17,
};

# Tea

import duties are paid at the border.

```js
import Tabs from '@theme/Tabs';
```

export default Page;
"""
TEXT = """

# Tea

import duties are paid at the border.

```js
import Tabs from '@theme/Tabs';
```

"""


def test_imports_and_exports_are_left_out_and_code_and_sentences_stay() -> None:
    assert without_modules(PAGE, exports=True) == TEXT
    assert without_modules("export default is a word of JavaScript.", exports=False).startswith("export")
    assert without_modules("One.\nimport a from 'b'", exports=True) == "One.\nimport a from 'b'"
