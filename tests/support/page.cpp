#include "support/page.hpp"

#include "support/child_process.hpp"

namespace pyinject::test {

nlohmann::json data_of_page(const std::string& path) {
  constexpr auto kDecode = R"(
import base64, re, sys, zlib
data = re.search('type="application/octet-stream">([^<]*)<', open(sys.argv[1]).read()).group(1)
sys.stdout.write(zlib.decompress(base64.b64decode(data)).decode())
)";
  return nlohmann::json::parse(run({"python3", "-c", kDecode, path}).out);
}

}  // namespace pyinject::test
