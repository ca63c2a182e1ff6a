#include "cli/function_hint.hpp"

#include <gtest/gtest.h>

namespace pyinject::cli {
namespace {

TEST(FunctionHint, NamesWhatWasMeant) {
  report::Profile profile;
  for (const auto* const name : {"JSONEncoder.encode", "Cart.add", "Order.add", "main"}) {
    profile.functions.push_back({.kind = report::Kind::kPython, .name = name});
  }
  profile.functions.push_back({.kind = report::Kind::kNative, .name = "PyObject_Vectorcall"});
  const auto hint = [&](std::string_view wanted) { return function_hint(profile, wanted); };
  EXPECT_EQ(hint("main"), "");
  EXPECT_EQ(hint("PyObject_Vectorcall"), "");
  EXPECT_EQ(hint("encode"), "no function is called 'encode'; did you mean 'JSONEncoder.encode'?");
  EXPECT_EQ(hint("add"), "no function is called 'add'; did you mean 'Cart.add' or 'Order.add'?");
  EXPECT_EQ(hint("Encoder"), "no function is called 'Encoder'; did you mean 'JSONEncoder.encode'?");
  EXPECT_EQ(hint("encdoe"), "no function is called 'encdoe'; did you mean 'JSONEncoder.encode'?");
  EXPECT_EQ(hint("PyObject_Vectorcal"),
            "no function is called 'PyObject_Vectorcal'; did you mean 'PyObject_Vectorcall'?");
  EXPECT_EQ(hint("nothing\n"), "no function is called 'nothing\\x0a'");
}

}  // namespace
}  // namespace pyinject::cli
