#include "python/objects/remote_objects.hpp"

#include "python/layout/layout_facts.hpp"
#include "python/objects/frame_locals.hpp"
#include "python/objects/lock_walk.hpp"
#include "python/objects/task_walk.hpp"
#include "python/objects/value_text.hpp"
#include "unit/memory/fake_memory.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <string_view>

namespace pyinject::python {
namespace {

using base::RemoteAddress;

constexpr std::uint64_t kHeap = std::uint64_t{1} << 9U;
constexpr std::uint64_t kInt = std::uint64_t{1} << 24U;
constexpr std::uint64_t kList = std::uint64_t{1} << 25U;
constexpr std::uint64_t kTuple = std::uint64_t{1} << 26U;
constexpr std::uint64_t kStr = std::uint64_t{1} << 28U;
constexpr std::uint64_t kDict = std::uint64_t{1} << 29U;

StackLayout stack_layout() {
  return std::get<RuntimeLayout>(parse_layout({.major = 3, .minor = 12}, {})).stack;
}

// The tables of 3.14, without the check against published offsets.
ObjectLayout object_layout_314() {
  return {.modules = 0x100,
          .locals = 80,
          .tuple_items = 32,
          .generator_states = {
              .created = -3, .suspended_last = -1, .delegates_first = std::int8_t{-1}}};
}

class RemoteObjectsTest : public testing::Test {
 protected:
  RemoteObjectsTest() {
    type(kStrType, "str", kStr);
    type(kIntType, "int", kInt);
    type(kDictType, "dict", kDict);
    type(kListType, "list", kList);
    type(kTupleType, "tuple", kTuple);
    type(kSetType, "set", 0);
  }
  void type(std::uint64_t at, std::string_view name, std::uint64_t flags, std::uint64_t size = 16) {
    memory_.put_zeros(at, 2048);
    memory_.put(at + 24, at + 1024);
    memory_.put_text(at + 1024, name);
    memory_.put(at + 32, size);
    memory_.put(at + 168, flags);
  }
  void object(std::uint64_t at, std::uint64_t type, std::size_t size) {
    memory_.put_zeros(at, size);
    memory_.put(at + 8, type);
  }
  std::uint64_t text(std::string_view text) {
    const auto at = next_;
    next_ += 64 + (text.size() + 7) / 8 * 8;
    object(at, kStrType, 56 + text.size());
    memory_.put(at + 16, std::uint64_t{text.size()});
    memory_.put(at + 32, std::uint32_t{0x64});  // compact, ASCII, one byte
    memory_.put_text(at + 40, text);
    return at;
  }
  std::uint64_t number(std::uint64_t value) {
    const auto at = next_;
    next_ += 64;
    object(at, kIntType, 64);
    memory_.put(at + 16, std::uint64_t{3 << 3});
    for (std::uint64_t i = 0; i < 3; ++i) {
      memory_.put(at + 24 + 4 * i, static_cast<std::uint32_t>(value >> (30 * i) & 0x3fffffffU));
    }
    return at;
  }
  // A dict with keys of the general kind.
  void dict(std::uint64_t at, const std::vector<std::pair<std::uint64_t, std::uint64_t>>& items) {
    object(at, kDictType, 48);
    memory_.put(at + 32, at + 64);
    memory_.put_zeros(at + 64, 32 + 8 + items.size() * 24);
    memory_.put(at + 64 + 9, std::uint8_t{3});
    memory_.put(at + 64 + 24, std::uint64_t{items.size()});
    for (std::size_t i = 0; i < items.size(); ++i) {
      memory_.put(at + 64 + 40 + i * 24 + 8, items[i].first);
      memory_.put(at + 64 + 40 + i * 24 + 16, items[i].second);
    }
  }

  static constexpr std::uint64_t kStrType = 0x10000;
  static constexpr std::uint64_t kIntType = 0x11000;
  static constexpr std::uint64_t kDictType = 0x12000;
  static constexpr std::uint64_t kListType = 0x13000;
  static constexpr std::uint64_t kTupleType = 0x14000;
  static constexpr std::uint64_t kSetType = 0x15000;
  std::uint64_t next_ = 0x100000;
  test::FakeMemory memory_;
  StackLayout stack_ = stack_layout();
  ObjectLayout layout_ = object_layout_314();
  RemoteObjects objects_{memory_, stack_, layout_};
};

TEST_F(RemoteObjectsTest, ReadsNumbers) {
  EXPECT_EQ(objects_.number(RemoteAddress{number(0)}), 0U);
  EXPECT_EQ(objects_.number(RemoteAddress{number(~std::uint64_t{0})}), ~std::uint64_t{0});
  const auto negative = number(5);
  memory_.put(negative + 16, std::uint64_t{1 << 3 | 2});
  EXPECT_FALSE(objects_.number(RemoteAddress{negative}));
  const auto large = number(5);
  memory_.put(large + 16, std::uint64_t{4 << 3});
  EXPECT_FALSE(objects_.number(RemoteAddress{large}));
  EXPECT_FALSE(objects_.number(RemoteAddress{text("5")}));
  EXPECT_FALSE(objects_.number(RemoteAddress{}));
}

TEST_F(RemoteObjectsTest, FindsItemsByTheWholeKey) {
  const std::string key(100, 'k');
  const auto almost = text(key.substr(1) + "x");
  dict(0x20000, {{text("other"), 0x1}, {0, 0}, {almost, 0x2}, {number(7), 0x3}, {text(key), 0x4}});
  EXPECT_EQ(objects_.item(RemoteAddress{0x20000}, key), RemoteAddress{0x4});
  EXPECT_EQ(objects_.item(RemoteAddress{0x20000}, "other"), RemoteAddress{0x1});
  EXPECT_FALSE(objects_.item(RemoteAddress{0x20000}, "missing"));
  EXPECT_EQ(objects_.items(RemoteAddress{0x20000})->size(), 4U);
}

TEST_F(RemoteObjectsTest, RefusesDictsThatCannotBe) {
  dict(0x20000, {{text("key"), 0x4}});
  memory_.put(0x20000 + 64 + 24, RemoteObjects::kMostItems + 1);
  EXPECT_FALSE(objects_.items(RemoteAddress{0x20000})) << "too many";
  memory_.put(0x20000 + 64 + 24, std::uint64_t{1});
  memory_.put(0x20000 + 64 + 10, std::uint8_t{2});
  EXPECT_FALSE(objects_.items(RemoteAddress{0x20000})) << "shared keys without values";
  memory_.put(0x20000 + 64 + 10, std::uint8_t{3});
  EXPECT_FALSE(objects_.items(RemoteAddress{0x20000})) << "no such kind";
  memory_.put(0x20000 + 64 + 10, std::uint8_t{0});
  memory_.put(0x20000 + 64 + 9, std::uint8_t{60});
  EXPECT_FALSE(objects_.items(RemoteAddress{0x20000})) << "too large";
  EXPECT_FALSE(objects_.items(RemoteAddress{text("key")}));
}

TEST_F(RemoteObjectsTest, ReadsSequencesAndSets) {
  object(0x20000, kTupleType, 64);
  memory_.put(0x20010, std::uint64_t{2});
  memory_.put(0x20020, std::uint64_t{0x111});
  memory_.put(0x20028, std::uint64_t{0x222});
  EXPECT_EQ(objects_.elements(RemoteAddress{0x20000}),
            (std::vector{RemoteAddress{0x111}, RemoteAddress{0x222}}));
  EXPECT_FALSE(objects_.elements(RemoteAddress{0x20000}, 1)) << "more than allowed";
  object(0x30000, kSetType, 64);
  memory_.put(0x30020, std::uint64_t{3});
  memory_.put(0x30028, std::uint64_t{0x31000});
  memory_.put_zeros(0x31000, 64);
  memory_.put(0x31010, std::uint64_t{0x111});
  memory_.put(0x31018, std::uint64_t{5});
  memory_.put(0x31020, std::uint64_t{0x222});
  memory_.put(0x31028, ~std::uint64_t{0});  // removed
  EXPECT_EQ(objects_.elements(RemoteAddress{0x30000}), (std::vector{RemoteAddress{0x111}}));
  memory_.put(0x30020, ~std::uint64_t{0});
  EXPECT_FALSE(objects_.elements(RemoteAddress{0x30000})) << "its size overflows";
}

TEST_F(RemoteObjectsTest, ReadsTheFirstOfMany) {
  constexpr std::uint64_t kMany = std::uint64_t{1} << 40U;
  object(0x20000, kListType, 40);
  memory_.put(0x20000 + 16, kMany);
  memory_.put(0x20000 + 24, std::uint64_t{0x21000});
  for (std::uint64_t i = 0; i < 32; ++i) {
    memory_.put(0x21000 + 8 * i, number(i));
  }
  const auto list = objects_.first_elements(RemoteAddress{0x20000}, 3);
  ASSERT_TRUE(list);
  EXPECT_EQ(list->first.size(), 3U);
  EXPECT_EQ(list->count, kMany);
  EXPECT_FALSE(list->all);
  EXPECT_FALSE(objects_.elements(RemoteAddress{0x20000}));
  EXPECT_EQ(value_text(objects_, RemoteAddress{0x20000}).substr(0, 9), "[0, 1, 2,");
  EXPECT_TRUE(value_text(objects_, RemoteAddress{0x20000}).ends_with("... 1099511627776 in all]"));
  dict(0x30000, {{text("a"), number(1)}, {text("b"), number(2)}});
  memory_.put(0x30000 + 16, kMany);
  const auto items = objects_.first_items(RemoteAddress{0x30000}, 1);
  ASSERT_TRUE(items);
  EXPECT_EQ(items->first.size(), 1U);
  EXPECT_EQ(items->count, kMany);
  // A list within itself, and a set that says that it has elements.
  object(0x40000, kListType, 40);
  memory_.put(0x40000 + 16, std::uint64_t{2});
  memory_.put(0x40000 + 24, std::uint64_t{0x41000});
  memory_.put(0x41000, std::uint64_t{0x40000});
  memory_.put(0x41000 + 8, std::uint64_t{0x40000});
  EXPECT_EQ(value_text(objects_, RemoteAddress{0x40000}), "[[...], [...]]");
  object(0x50000, kSetType, 64);
  memory_.put(0x50000 + 24, kMany);
  memory_.put(0x50000 + 32, kMany - 1);
  memory_.put(0x50000 + 40, std::uint64_t{0x60000});
  memory_.put_zeros(0x60000, std::size_t{1} << 16U);
  EXPECT_EQ(value_text(objects_, RemoteAddress{0x50000}), "{... 1099511627776 in all}");
  EXPECT_EQ(value_text(objects_, RemoteAddress{0x7}), "?");
}

TEST_F(RemoteObjectsTest, ProgramsCannotDefineStaticTypes) {
  type(0x40000, "coroutine", kHeap);
  object(0x20000, 0x40000, 16);
  EXPECT_FALSE(objects_.is_static(RemoteAddress{0x20000}, "coroutine"));
  EXPECT_TRUE(objects_.is_a(RemoteAddress{0x20000}, "coroutine"));
  type(0x41000, "coroutine", 0);
  object(0x21000, 0x41000, 16);
  EXPECT_TRUE(objects_.is_static(RemoteAddress{0x21000}, "coroutine"));
}

TEST_F(RemoteObjectsTest, BaseTypesMayLeadAnywhere) {
  type(0x40000, "Derived", kHeap);
  object(0x20000, 0x40000, 16);
  memory_.put(0x40000 + 344, std::uint64_t{0x50000});
  memory_.put_zeros(0x50000, 1024);
  memory_.put(0x50010, ~std::uint64_t{0});  // a tuple of too many
  memory_.put(0x50020, std::uint64_t{0x40000});
  memory_.put(0x50028, std::uint64_t{0x41000});
  type(0x41000, "Base", kHeap);
  EXPECT_TRUE(objects_.is_a(RemoteAddress{0x20000}, "Base"));
  EXPECT_FALSE(objects_.is_a(RemoteAddress{0x20000}, "Other"));
}

class TaskLists : public RemoteObjectsTest {
 protected:
  static constexpr std::uint64_t kThread = 0x60000;
  static constexpr std::uint64_t kInterpreter = 0x62000;

  TaskLists() {
    memory_.put_zeros(kThread, 4096);
    memory_.put_zeros(kInterpreter, 4096);
  }
  void link(std::uint64_t from, std::uint64_t to) {
    memory_.put(from, to);
    memory_.put(to + 8, from);
  }
  [[nodiscard]] RawTasks list() const {
    return TaskWalk{objects_, tasks_}.list(
        {.interpreter = RemoteAddress{kInterpreter}, .threads = {RemoteAddress{kThread}}});
  }

  TaskLayout tasks_ = *task_layout({.major = 3, .minor = 14}, 16,
                                   TaskOffsets{.name = 136,
                                               .running = 872,
                                               .size = 168,
                                               .awaited_by = 96,
                                               .is_task = 108,
                                               .awaited_by_is_set = 109,
                                               .coroutine = 128,
                                               .node = 152,
                                               .interpreter_tasks = 1000,
                                               .thread_tasks = 880});
};

TEST_F(TaskLists, UnusedOnesAreEmpty) {
  EXPECT_TRUE(list().tasks.empty());
  EXPECT_TRUE(list().complete);
}

TEST_F(TaskLists, HaveEachTaskOnce) {
  link(kThread + 880, 0x70098);
  link(0x70098, 0x71098);
  link(0x71098, kThread + 880);
  memory_.put(kThread + 872, std::uint64_t{0x71000});
  const auto found = list();
  ASSERT_EQ(found.tasks.size(), 2U);
  EXPECT_TRUE(found.complete);
  EXPECT_EQ(found.tasks[0].address, RemoteAddress{0x71000});
  EXPECT_TRUE(found.tasks[0].current);
  EXPECT_EQ(found.tasks[1].address, RemoteAddress{0x70000});
  EXPECT_FALSE(found.tasks[1].current);
}

TEST_F(TaskLists, AreIncompleteIfTheyChangeOrLeadNowhere) {
  link(kThread + 880, 0x70098);
  link(0x70098, 0x71098);
  memory_.put(0x71098, std::uint64_t{0x70098});  // a circle without the head
  EXPECT_FALSE(list().complete);
  EXPECT_EQ(list().tasks.size(), 2U);
  memory_.put(0x71098, std::uint64_t{0x7f000});  // not mapped
  EXPECT_FALSE(list().complete);
  memory_.put(0x71098, std::uint64_t{0});
  EXPECT_FALSE(list().complete);
}

TEST_F(TaskLists, StopAtALimit) {
  // Each node is 16 bytes after the one before: no end.
  class Endless : public memory::MemoryReader {
   public:
    [[nodiscard]] bool read(RemoteAddress from, std::span<std::byte> into) const override {
      const std::array<std::uint64_t, 2> node{from.value() + 16, from.value() - 16};
      for (std::size_t i = 0; i < into.size(); i += sizeof node) {
        std::memcpy(into.data() + i, node.data(), std::min(sizeof node, into.size() - i));
      }
      return true;
    }
  };
  const Endless endless;
  const RemoteObjects objects{endless, stack_, layout_};
  const auto found = TaskWalk{objects, tasks_}.list(
      {.interpreter = RemoteAddress{kInterpreter}, .threads = {RemoteAddress{kThread}}});
  EXPECT_FALSE(found.complete);
  EXPECT_LE(found.tasks.size(), kMostTasks);
}

TEST_F(TaskLists, TasksOfOtherSizesAreRefused) {
  type(0x40000, "_asyncio.Task", kHeap, 168);
  object(0x70000, 0x40000, 168);
  RawTask task{.address = RemoteAddress{0x70000}};
  EXPECT_EQ((TaskWalk{objects_, tasks_}.read(task)), TaskWalk::Outcome::kRead);
  memory_.put(0x70000 + 104, std::uint32_t{2});
  EXPECT_EQ((TaskWalk{objects_, tasks_}.read(task)), TaskWalk::Outcome::kEnded);
  type(0x41000, "_asyncio.Task", kHeap, 176);
  object(0x71000, 0x41000, 176);
  RawTask other{.address = RemoteAddress{0x71000}};
  EXPECT_EQ((TaskWalk{objects_, tasks_}.read(other)), TaskWalk::Outcome::kNoTask);
}

TEST_F(TaskLists, CoroutinesThatAwaitEachOtherEnd) {
  type(0x40000, "_asyncio.Task", kHeap, 168);
  type(0x41000, "coroutine", 0);
  object(0x70000, 0x40000, 168);
  memory_.put(0x70000 + 128, std::uint64_t{0x80000});
  for (const auto at : std::array<std::uint64_t, 2>{0x80000, 0x81000}) {
    object(at, 0x41000, 512);
    memory_.put(at + 67, std::int8_t{-1});
    memory_.put(at + 72 + stack_.stack_end, at + 0x100);
    memory_.put(at + 0xf8, at ^ 0x1000U);
  }
  stack_.stack_end_is_index = false;
  RawTask task{.address = RemoteAddress{0x70000}};
  ASSERT_EQ((TaskWalk{objects_, tasks_}.read(task)), TaskWalk::Outcome::kRead);
  EXPECT_EQ(task.awaits.size(), kMostAwaits);
  EXPECT_FALSE(task.whole);
}

// Every address reads something: pointers lead anywhere, and all types are possible.
TEST(HostileObjects, AreReadWithinLimits) {
  class Noise : public memory::MemoryReader {
   public:
    explicit Noise(unsigned seed) : bytes_(1U << 16U) {
      std::mt19937_64 random{seed};
      for (std::size_t i = 0; i < bytes_.size(); i += 8) {
        // Mostly small multiples of eight: addresses in this very memory.
        const std::uint64_t word = random() % 4 == 0 ? random() : random() % bytes_.size() / 8 * 8;
        std::memcpy(bytes_.data() + i, &word, sizeof word);
      }
    }
    [[nodiscard]] bool read(RemoteAddress from, std::span<std::byte> into) const override {
      for (std::size_t i = 0; i < into.size(); ++i) {
        into[i] = bytes_[(from.value() + i) % bytes_.size()];
      }
      return true;
    }

   private:
    std::vector<std::byte> bytes_;
  };
  const auto stack = stack_layout();
  for (unsigned seed = 0; seed < 50; ++seed) {
    const Noise noise{seed};
    for (const auto minor : std::array<std::uint8_t, 2>{12, 13}) {
      const auto layout = object_layout_314();
      const auto tasks = *task_layout({.major = 3, .minor = minor}, 16, std::nullopt);
      const RemoteObjects objects{noise, stack, layout};
      const TaskWalk walk{objects, tasks};
      for (std::uint64_t at = 8; at < 4096; at += 256) {
        const RemoteAddress address{at};
        (void)objects.type_name(address);
        (void)objects.elements(address);
        (void)objects.items(address);
        (void)objects.attribute(address, "name");
        (void)objects.global(address, "name");
        EXPECT_LE(value_text(objects, address).size(), 2000U);
        (void)frame_locals(objects, address, address + 64);
        RawTask task{.address = address};
        if (walk.read(task) == TaskWalk::Outcome::kRead) {
          EXPECT_LE(task.awaits.size(), kMostAwaits);
          EXPECT_LE(task.awaited_by.size(), kMostAwaiters);
        }
        const NamedFrame frame{.address = address,
                               .code = address,
                               .names = {.qualname = "Thread.join", .file = "threading.py"}};
        (void)LockWalk{objects}.wait(std::span{&frame, 1}, address + 64);
        (void)LockWalk{objects}.holds(address, address, address + 64);
      }
    }
  }
}

}  // namespace
}  // namespace pyinject::python
