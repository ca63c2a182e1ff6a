"""Decodes an ExportProfilesServiceRequest of opentelemetry-proto 1.11.0, and resolves its indices.

MESSAGES is written from .../profiles/v1development/profiles.proto, .../common/v1/common.proto and
.../resource/v1/resource.proto: a field that is not there, or of another wire type, is an error.
"""
import struct

# number: (name, type); a type in [] is repeated; an upper-case one is a message.
MESSAGES = {
    "Request": {1: ("resource_profiles", ["ResourceProfiles"]), 2: ("dictionary", "Dictionary")},
    "ResourceProfiles": {1: ("resource", "Resource"), 2: ("scope_profiles", ["ScopeProfiles"]), 3: ("schema_url", "string")},
    "Resource": {1: ("attributes", ["KeyValue"])},
    "ScopeProfiles": {1: ("scope", "Scope"), 2: ("profiles", ["Profile"]), 3: ("schema_url", "string")},
    "Scope": {1: ("name", "string"), 2: ("version", "string")},
    "KeyValue": {1: ("key", "string"), 2: ("value", "AnyValue")},
    "AnyValue": {1: ("string", "string"), 2: ("bool", "int"), 3: ("int", "int"), 4: ("double", "fixed64")},
    "Profile": {
        1: ("sample_type", "ValueType"),
        2: ("samples", ["Sample"]),
        3: ("time_unix_nano", "fixed64"),
        4: ("duration_nano", "int"),
        5: ("period_type", "ValueType"),
        6: ("period", "int"),
        7: ("profile_id", "bytes"),
        8: ("dropped_attributes_count", "int"),
        11: ("attribute_indices", ["int"]),
    },
    "ValueType": {1: ("type_strindex", "int"), 2: ("unit_strindex", "int")},
    "Sample": {
        1: ("stack_index", "int"),
        2: ("attribute_indices", ["int"]),
        3: ("link_index", "int"),
        4: ("values", ["int"]),
        5: ("timestamps_unix_nano", ["fixed64"]),
    },
    "Dictionary": {
        1: ("mapping_table", ["Mapping"]),
        2: ("location_table", ["Location"]),
        3: ("function_table", ["Function"]),
        4: ("link_table", ["Link"]),
        5: ("string_table", ["string"]),
        6: ("attribute_table", ["KeyValueAndUnit"]),
        7: ("stack_table", ["Stack"]),
    },
    "Mapping": {
        1: ("memory_start", "int"),
        2: ("memory_limit", "int"),
        3: ("file_offset", "int"),
        4: ("filename_strindex", "int"),
        5: ("attribute_indices", ["int"]),
    },
    "Stack": {1: ("location_indices", ["int"])},
    "Location": {1: ("mapping_index", "int"), 2: ("address", "int"), 3: ("lines", ["Line"]), 4: ("attribute_indices", ["int"])},
    "Line": {1: ("function_index", "int"), 2: ("line", "int"), 3: ("column", "int")},
    "Function": {
        1: ("name_strindex", "int"),
        2: ("system_name_strindex", "int"),
        3: ("filename_strindex", "int"),
        4: ("start_line", "int"),
    },
    "Link": {1: ("trace_id", "bytes"), 2: ("span_id", "bytes")},
    "KeyValueAndUnit": {1: ("key_strindex", "int"), 2: ("value", "AnyValue"), 3: ("unit_strindex", "int")},
}
VARINT, FIXED64, LENGTH = 0, 1, 2
ZEROS = {"int": 0, "fixed64": 0, "string": "", "bytes": b""}


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def numbers(data, kind):
    if kind == "fixed64":
        return list(struct.unpack(f"<{len(data) // 8}Q", data))
    values, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        values.append(value)
    return values


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == VARINT:
            value, at = varint(data, at)
        else:
            assert key & 7 in (FIXED64, LENGTH), key
            size, at = (8, at) if key & 7 == FIXED64 else varint(data, at)
            value = data[at : at + size]
            assert len(value) == size
            at += size
        yield key >> 3, key & 7, value


def one_value(kind, wire, data):
    if kind == "int":
        assert wire == VARINT, (kind, wire)
        return data
    if kind == "fixed64":
        assert wire == FIXED64, (kind, wire)
        return struct.unpack("<Q", data)[0]
    assert wire == LENGTH, (kind, wire)
    return {"string": bytes.decode, "bytes": bytes}.get(kind, lambda data: decode(kind, data))(data)


def decode(message, data):
    known = MESSAGES[message]
    values = {name: [] if isinstance(kind, list) else ZEROS.get(kind) for name, kind in known.values()}
    for number, wire, value in fields(data):
        assert number in known, (message, number)
        name, kind = known[number]
        if not isinstance(kind, list):
            values[name] = one_value(kind, wire, value)
        elif kind[0] in ("int", "fixed64") and wire == LENGTH:
            values[name] += numbers(value, kind[0])
        else:
            values[name].append(one_value(kind[0], wire, value))
    return values


def plain(any_value):
    return any_value["string"] if any_value["string"] != "" else any_value["int"]


class Resolver:
    def __init__(self, dictionary):
        self.tables = dictionary
        self.strings = dictionary["string_table"]
        assert self.strings[0] == ""
        for table in ("mapping_table", "location_table", "function_table", "stack_table", "attribute_table"):
            assert not any(dictionary[table][0].values()), f"{table}[0] is not the zero value"

    def attributes(self, owner):
        entries = [self.tables["attribute_table"][index] for index in owner["attribute_indices"]]
        return {self.strings[entry["key_strindex"]]: plain(entry["value"]) for entry in entries}

    def type(self, value):
        return value and f"{self.strings[value['type_strindex']]}/{self.strings[value['unit_strindex']]}"

    def frame(self, index):
        location = self.tables["location_table"][index]
        line = location["lines"][0]
        function = self.tables["function_table"][line["function_index"]]
        mapping = self.tables["mapping_table"][location["mapping_index"]]
        return {
            "function": self.strings[function["name_strindex"]],
            "file": self.strings[function["filename_strindex"]],
            "line": line["line"],
            "mapping": self.strings[mapping["filename_strindex"]],
            "kind": self.attributes(location)["profile.frame.type"],
        }

    def sample(self, sample):
        stack = self.tables["stack_table"][sample["stack_index"]]
        return {
            "stack": [self.frame(index) for index in stack["location_indices"]],
            "attributes": self.attributes(sample),
            "values": sample["values"],
            "times": sample["timestamps_unix_nano"],
        }

    def profile(self, profile):
        return {
            "type": self.type(profile["sample_type"]),
            "period_type": self.type(profile["period_type"]),
            "period": profile["period"],
            "time": profile["time_unix_nano"],
            "duration": profile["duration_nano"],
            "id": profile["profile_id"].hex(),
            "samples": [self.sample(sample) for sample in profile["samples"]],
        }


def decode_request(data):
    request = decode("Request", data)
    (resource,) = request["resource_profiles"]
    (scope,) = resource["scope_profiles"]
    resolver = Resolver(request["dictionary"])
    return {
        "resource": {one["key"]: plain(one["value"]) for one in resource["resource"]["attributes"]},
        "scope": scope["scope"]["name"],
        "profiles": [resolver.profile(profile) for profile in scope["profiles"]],
    }
