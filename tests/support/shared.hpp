// What the tests of a suite share, such as a recording that each of them looks at.
//
//   class Pictures : public testing::TestWithParam<Recorded> {
//    protected:
//     static void TearDownTestSuite() { recordings().forget(); }
//     static Shared<Recording>& recordings() {
//       static Shared<Recording> all;
//       return all;
//     }
//   };
//
// ctest runs the tests of a suite with one row in one process (docs/testing.md).
#pragma once

#include <map>
#include <memory>
#include <string>

namespace pyinject::test {

template <typename Value>
class Shared {
 public:
  // The value for KEY, such as a row. The first call makes it with MAKE, which returns a Value.
  template <typename Make>
  [[nodiscard]] Value& of(const std::string& key, const Make& make) {
    auto& value = values_[key];
    if (value == nullptr) {
      value.reset(new Value(make()));  // not make_unique: a Value need not be movable
    }
    return *value;
  }
  void forget() { values_.clear(); }

 private:
  std::map<std::string, std::unique_ptr<Value>> values_;
};

}  // namespace pyinject::test
