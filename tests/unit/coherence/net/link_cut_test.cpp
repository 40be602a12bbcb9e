// Links whose connections are cut at every byte, and at random: each frame arrives once, in order (tcp.exactly-once).
#include <gtest/gtest.h>

#include <random>

#include "link_pair.hpp"
#include "tests/support/longer.hpp"

namespace gcl_test {

// Frame `number` of a side: its length and bytes follow from both.
static std::string content(int side, int number, unsigned seed) {
  std::minstd_rand random(seed * 2 + unsigned(side) + unsigned(number) * 977);
  random.discard(3);
  const size_t most = random() % 8 == 0 ? 20'000 : 200;
  std::string text(random() % most, ' ');
  for (char& c : text) c = char('a' + random() % 26);
  return text;
}

struct Traffic {
  const unsigned seed;
  const int frames;
  int sent[2] = {0, 0};

  void queue(Link* link, int side, int most) {
    while (link && most-- > 0 && sent[side] < frames &&
           link->send(uint16_t(sent[side] % 1000), bytes_of(content(side, sent[side], seed))).ok())
      sent[side]++;
  }
  void check(const Received& got, int side) const {
    for (size_t i = 0; i < got.texts.size(); i++) {
      ASSERT_EQ(got.types[i], i % 1000) << "seed " << seed;
      ASSERT_TRUE(got.texts[i] == content(side, int(i), seed)) << "frame " << i << ", seed " << seed;
    }
  }
  bool all(const LinkPair& pair) const {
    return int(pair.got_a.texts.size()) == frames && int(pair.got_b.texts.size()) == frames;
  }
};

TEST(LinkCuts, AtEveryByteOfEitherWay) {
  size_t longest = 1;
  for (size_t cut = 0; cut < longest; cut++) {
    for (const bool at_a : {false, true}) {
      LinkPair pair;
      Traffic traffic{1, 5};
      pair.connect();
      traffic.queue(pair.a.get(), 0, traffic.frames);
      // So many bytes arrive on one side, all that can on the other.
      size_t left = cut, moved = 1;
      while (moved > 0 && left > 0) {
        moved = pair.send(*pair.a, LinkPair::kAll) + (pair.b ? pair.send(*pair.b, LinkPair::kAll) : 0);
        const size_t some = at_a ? pair.arrive_at_a(left) : pair.arrive_at_b(left);
        left -= some;
        moved += some + (at_a ? pair.arrive_at_b(LinkPair::kAll) : pair.arrive_at_a(LinkPair::kAll));
        traffic.queue(pair.b.get(), 1, traffic.frames);
      }
      longest = std::max(longest, cut - left + 2);
      pair.cut();
      pair.connect();
      pair.deliver_all();
      traffic.queue(pair.b.get(), 1, traffic.frames);
      pair.deliver_all();
      ASSERT_TRUE(traffic.all(pair)) << "cut at byte " << cut << (at_a ? " to a" : " to b");
      traffic.check(pair.got_b, 0);
      traffic.check(pair.got_a, 1);
    }
  }
  EXPECT_GT(longest, 500u);
}

TEST(LinkCuts, AtRandom) {
  const int runs = by_one_thread(200) * longer();
  int cuts = 0;
  for (int run = 0; run < runs; run++) {
    const unsigned number = seed(run);
    std::mt19937 random(number);
    LinkPair::Settings settings;
    settings.window = random() % 2 == 0 ? 32 * 1024 : 256 * 1024;
    settings.times.patience_ns = 1000 * LinkPair::kSecond;
    LinkPair pair(settings);
    Traffic traffic{number, 60};
    for (int step = 0; step < 100'000 && !(traffic.all(pair) && pair.a->all_acknowledged()); step++) {
      const auto most = [&] { return random() % 4 == 0 ? LinkPair::kAll : size_t(random() % 3000); };
      if (!pair.up) pair.connect();
      switch (random() % 16) {
        case 0:
          if (random() % 4 == 0) pair.cut(), cuts++;
          break;
        case 1:
        case 2:
          traffic.queue(pair.a.get(), 0, int(random() % 8));
          break;
        case 3:
        case 4:
          traffic.queue(pair.b.get(), 1, int(random() % 8));
          break;
        case 5:
        case 6:
        case 7:
          if (pair.a->attached()) pair.send(*pair.a, most());
          break;
        case 8:
        case 9:
        case 10:
          if (pair.b && pair.b->attached()) pair.send(*pair.b, most());
          break;
        case 11:
        case 12:
          pair.arrive_at_a(most());
          break;
        case 13:
        case 14:
          pair.arrive_at_b(most());
          break;
        default:
          pair.pass(random() % 20'000'000);
      }
      if (!pair.a->attached()) pair.cut();
      ASSERT_FALSE(pair.a->over()) << pair.a->reason() << ", seed " << number;
      ASSERT_FALSE(pair.b && pair.b->over()) << pair.b->reason() << ", seed " << number;
    }
    ASSERT_TRUE(traffic.all(pair)) << "seed " << number;
    ASSERT_TRUE(pair.a->all_acknowledged()) << "seed " << number;
    traffic.check(pair.got_b, 0);
    traffic.check(pair.got_a, 1);
  }
  EXPECT_GT(cuts, runs);
}

}  // namespace gcl_test
