#include "base/greenlet_name.hpp"

#include <gtest/gtest.h>

namespace pyinject::base {
namespace {

TEST(GreenletName, IsThatOfItsOutermostFunction) {
  GreenletName name;
  EXPECT_EQ(name.text(), "[greenlet]");
  name.add("Shop.sell", "/srv/shop.py");
  EXPECT_FALSE(name.open());
  name.add("Shop.pay", "/srv/shop.py");
  EXPECT_EQ(name.text(), "[greenlet] Shop.sell");
}

TEST(GreenletName, LeavesOutWhatStartsGreenlets) {
  GreenletName name;
  name.add("WSGIServer.handle", "/usr/lib/python3/dist-packages/gevent/pywsgi.py");
  name.add("WSGIHandler.handle", "/usr/lib/python3/dist-packages/gevent/pywsgi.py");
  EXPECT_TRUE(name.open());
  EXPECT_EQ(name.text(), "[greenlet] WSGIServer.handle");
  name.add("application", "/srv/gevent_shop.py");
  EXPECT_EQ(name.text(), "[greenlet] application");
}

TEST(GreenletName, IsUnknownIfFunctionsAreMissing) {
  GreenletName name;
  name.add_unknown();
  name.add("Shop.pay", "/srv/shop.py");
  EXPECT_EQ(name.text(), "[greenlet] [unknown]");
  GreenletName hub;
  hub.add("Hub.run", "/usr/lib/python3/dist-packages/gevent/hub.py");
  hub.add_unknown();
  EXPECT_EQ(hub.text(), "[greenlet] Hub.run");
}

}  // namespace
}  // namespace pyinject::base
