# Every target works in .venv. `make demo` needs only the CPU serving extra; the rest sets up everything.
PYTHON ?= python3
PORT := $(or $(TERCET_PORT),8080)
BIN := .venv/bin
# An installation compiles these, so it is made again where one changes.
KERNELS := setup.py $(wildcard index/native/*.[ch] models/native/*.[ch])
PACKAGES := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt
INSTALL := $(PACKAGES) --editable

# What is imported is compiled once, whatever the environment says: tests start more than a thousand processes, and each would
# compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo serve setup test test-slow test-all test-arm sanitize sanitized on-sanitized outside peers gpu on-gpu images lint style types check format bench endurance docs wheels

demo: .venv/.installed-cpu
	$(BIN)/tercet demo --port $(PORT)

serve: .venv/.installed-cpu
	$(BIN)/tercet serve --port $(PORT)

setup: .venv/.installed-dev

# Many tests force to the disk what they write, and wait for it: their folders are in memory, where it has room for them
# and programs may be run from it.
IN_MEMORY := $(shell ! grep --quiet ' /dev/shm .*noexec' /proc/mounts \
	&& test "$$(df --output=avail --block-size=1G /dev/shm 2>/dev/null | tail --lines 1)" -ge 4 2>/dev/null \
	&& echo PYTEST_DEBUG_TEMPROOT=/dev/shm)

# Tests of one file share a process and its fixtures; one thread each, and where a test asks for more, these sleep while they
# wait: processes that share CPUs slow down others. PROCESSES: how many, by default one for each CPU.
PYTEST := $(IN_MEMORY) OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE $(BIN)/pytest --numprocesses $(or $(PROCESSES),logical) --maxprocesses 8 --dist loadfile --no-loadscope-reorder

# What runs in one process, and one of each kind of process: minutes.
test: setup
	$(PYTEST) -m "not slow and not images and not endurance"

# The rest that one machine can run.
test-slow: setup
	$(PYTEST) -m "slow and not images and not endurance"

test-all: test test-slow

# The kernels' tests as ARM's processors would run them, by qemu-user, which has to be installed. The checks of every
# change leave it out: it fetches 300 MB, and one of three processors takes about two minutes of a core. ARM: some of the variants, or all.
test-arm: setup
	$(BIN)/python tests/arm/run.py $(ARM)

# Tests of the index and of the encoder's kernels, and damaged inputs, with kernels that GCC's sanitizers of addresses and undefined behaviour watch, in
# a copy of the tree. What is freed there stays for a while, so tests of how much a process holds are left out, and so is
# test_amx.py, which compiles kernels of its own, without sanitizers.
# TESTS: some of them; INPUTS: damaged ones for each kernel besides the 2,000 of the tests, 0 for none.
SANITIZED := build/sanitized
SANITIZERS := -fsanitize=address,undefined -fno-sanitize-recover=undefined -g1 -O1
sanitize: sanitized
	$(MAKE) --no-print-directory on-sanitized

# The copy with its kernels, without those that need another processor.
sanitized: setup
	rm -rf $(SANITIZED) && mkdir -p $(SANITIZED)
	git ls-files --cached --others --exclude-standard -z | tar --null --files-from - --create | tar --extract --directory $(SANITIZED)
	ln -s $(abspath .venv) $(SANITIZED)/.venv
	variants=$$($(BIN)/python -c 'from tercet.index.native.kernels import AVAILABLE_INSTRUCTIONS as names; print(*names)') \
		&& cd $(SANITIZED) && CC=gcc CFLAGS="$(SANITIZERS)" KERNEL_VARIANTS="$$variants" PYTHONPATH=src .venv/bin/python setup.py --quiet build_ext --inplace

on-sanitized:
	cd $(SANITIZED) && export PYTHONPATH=src:. OMP_NUM_THREADS=1 PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0:malloc_context_size=8 \
			LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" \
		&& .venv/bin/pytest --numprocesses logical --maxprocesses 8 --dist loadfile --timeout 1200 \
			-k 'not adds_no_' --ignore tests/index/native/test_amx.py $(or $(TESTS),tests/index tests/models/native) \
		$(if $(filter 0,$(INPUTS)),,&& .venv/bin/python -m tests.index.native.try_damage --inputs $(or $(INPUTS),10000))

# The packages for other frameworks, each in an environment of its own below .venv-outside. OUTSIDE: names, or all of them.
outside: .venv/.installed-cpu
	$(BIN)/python tests/outside/run.py $(OUTSIDE)

# Peers of docs/benchmarks.md: each installed from its lock file below .venv-peers, and run once. PEERS: names, or all of them.
peers: setup
	$(BIN)/python -m tests.endurance.peers.try_peers $(PEERS)

# All that needs a GPU, in an environment with the libraries of docker/Dockerfile.gpu: the tests marked gpu, a build and a
# search by each engine as in the image, and the speed beside the GPU's own; the image itself where Docker is there.
GPU := .venv-gpu/bin
gpu:
	@if nvidia-smi --list-gpus 2>/dev/null | grep --quiet GPU; then $(MAKE) --no-print-directory on-gpu; \
	else echo "there is no GPU here: nvidia-smi lists none, so nothing was run"; fi

on-gpu: .venv-gpu/.installed
	PYTHONPATH=. $(GPU)/python -m pytest -m gpu tests
	for engine in torch onnx; do \
		$(GPU)/tercet collection build examples/demo/corpus.jsonl --collection $$engine --bm25 --data build/gpu --engine $$engine --device cuda \
		&& $(GPU)/tercet search $$engine "why does dough rise" --weights 1,1,1,1 --data build/gpu --engine $$engine --device cuda || exit 1; \
	done
	$(GPU)/python -m benchmarks.encode --device cuda $(if $(PEER),--peer flagembedding=$(PEER))
	if command -v docker; then docker build --file docker/Dockerfile.gpu --tag tercet:gpu . \
		&& docker run --rm --gpus all --entrypoint python tercet:gpu -c "import torch; assert torch.cuda.is_available()"; fi

# Both images built and the CPU one started, without a container engine: needs root, buildah and debootstrap.
images: setup
	$(BIN)/pytest -m images tests/docker/test_images.py

# The pages as a site, with a search that needs no server: build/site/index.html.
docs: setup
	$(BIN)/mkdocs build

# What is published, in dist: the server's wheel for each kind of machine, of which Zig compiles for all, and those of the clients.
# docs/publish.md says how. TARGETS: some of them.
TARGETS ?= x86_64-linux-gnu.2.17 aarch64-linux-gnu.2.17 x86_64-macos.11.0 aarch64-macos.11.0
wheels: setup
	rm -rf dist
	for target in $(TARGETS); do \
		KERNEL_TARGET=$$target $(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist . || exit 1; \
	done
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist $(patsubst %/pyproject.toml,./%,$(wildcard clients/*/pyproject.toml))
	if command -v npm; then npm pack --silent --pack-destination dist ./clients/javascript; fi

lint: style types

style: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: setup
	$(BIN)/mypy

check: lint test-all

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# NAMES: some benchmarks, by default the usual ones. PEER: the Python of an environment with FlagEmbedding, see docs/benchmarks.md.
bench: setup .venv/.installed-bench
	PYTHONPATH=clients/python/src $(BIN)/python -m benchmarks $(if $(PEER),--peer $(PEER)) $(NAMES)

# What passes or fails over hours: kills, losses of power, faults, hostile clients. ENDURANCE=quick takes minutes.
endurance: setup
	$(BIN)/pytest -m endurance tests/endurance

.venv/bin/python:
	$(PYTHON) -m venv .venv

# For whoever wants to see it answer: kernels for this processor alone, compiled while the packages come. `make setup` has them all.
REQUIREMENTS := import tomllib; own = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	print(*own["dependencies"], *own["optional-dependencies"]["cpu"], sep="\n")
.venv/.installed-cpu: pyproject.toml constraints.txt $(KERNELS) | .venv/bin/python
	$(BIN)/python -c '$(REQUIREMENTS)' > .venv/requirements.txt
	KERNEL_VARIANTS=own $(INSTALL) . --no-deps & kernels=$$!; \
		$(PACKAGES) --no-compile --requirement .venv/requirements.txt && wait $$kernels
	touch $@

# Python compiles what is imported; to compile all of these 25,000 files takes more than a minute of one core.
.venv/.installed-dev: pyproject.toml constraints.txt $(KERNELS) | .venv/bin/python
	$(INSTALL) '.[cpu,parquet,files,torch,train,eval,ray,dev]' --no-compile
	touch $@ .venv/.installed-cpu

# torch in .[torch] and .[gpu] is one; the export of benchmarks/encode.py needs the former.
.venv-gpu/.installed: pyproject.toml constraints.txt $(KERNELS)
	$(PYTHON) -m venv .venv-gpu
	$(GPU)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[gpu,otel,parquet,files,torch]' \
		pytest pytest-asyncio pytest-timeout filelock hypothesis
	touch $@

.venv/.installed-bench: pyproject.toml constraints.txt $(KERNELS) | .venv/bin/python
	$(INSTALL) '.[bench]'
	touch $@
