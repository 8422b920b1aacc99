"""Builds a collection and searches it in one process, with no service.

Run from the repository's root: python examples/search_in_python.py
"""

import tempfile

import tercet

RECIPES = [
    {"id": "sourdough", "text": "Sourdough rises by wild yeast; the starter is fed with flour and water."},
    {"id": "meringue", "text": "Meringue is egg white beaten with sugar and dried in a cool oven."},
    {"id": "kimchi", "text": "Kimchi is cabbage fermented with salt, chilli and garlic."},
]

with tempfile.TemporaryDirectory() as folder, tercet.open(folder, checkpoint="minilm-m3") as store:
    recipes = store.collection("recipes", create=True)
    written = recipes.put(RECIPES)
    print(f"{written.upserted} documents, {written.usage['tokens']} tokens")
    for hit in recipes.search("which vegetable is preserved with salt?", top_k=3):
        s = hit.scores
        print(f"{hit.score:.3f} = {s.dense:.3f} + {s.sparse:.3f} + {s.colbert:.3f}  {hit.id}")
