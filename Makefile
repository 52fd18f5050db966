.PHONY: install test quick check format docs clean pins

install:
	pip install -e '.[train,test]'

test:
	python -m pytest -n auto

quick:
	python -m pytest -n auto -m 'not slow'

check:
	ruff check .
	ruff format --check .
	mypy

format:
	ruff check --fix .
	ruff format .

docs:
	python -m regard.options.reference > docs/options.md

clean:
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

# The environment of the tests, pinned with hashes; see CONTRIBUTING.md.
pins:
	pip install --quiet --dry-run --ignore-installed --report pins.json '.[test]'
	grep '^#' requirements-test.txt > pins.txt
	python -c "import json; print(*sorted(f\"{one['metadata']['name'].lower()}=={one['metadata']['version']} --hash=sha256:{one['download_info']['archive_info']['hashes']['sha256']}\" for one in json.load(open('pins.json'))['install'] if one['metadata']['name'] != 'regard'), sep='\n')" >> pins.txt
	mv pins.txt requirements-test.txt
	rm pins.json
