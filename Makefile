.PHONY: install test quick check format docs clean

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
