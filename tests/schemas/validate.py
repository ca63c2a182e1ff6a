"""Compares JSON with a JSON Schema."""
import json
import sys

try:
    from jsonschema import Draft202012Validator
except ImportError:
    Draft202012Validator = None


def _closed(schema):
    """SCHEMA, which then accepts no field that it does not list: each field is documented."""
    if isinstance(schema, list):
        return [_closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    copy = {key: _closed(value) for key, value in schema.items()}
    if copy.get("type") == "object" and "properties" in copy:
        copy.setdefault("additionalProperties", False)
    return copy


def differences(schema_file, name):
    """What is not as in SCHEMA_FILE in the file NAME (JSON; or JSON Lines, *.jsonl)."""
    with open(schema_file, encoding="utf-8") as file:
        schema = json.load(file)
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(_closed(schema))
    with open(name, encoding="utf-8") as file:
        text = file.read()
    values = [json.loads(line) for line in text.splitlines()] if name.endswith(".jsonl") else [json.loads(text)]
    return [f"{error.json_path}: {error.message[:300]}" for value in values for error in validator.iter_errors(value)]


if __name__ == "__main__":
    for difference in differences(sys.argv[1], sys.argv[2]):
        print(difference)
