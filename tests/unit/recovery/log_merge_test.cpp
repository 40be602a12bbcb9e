// Whole logs of several nodes, each in its own order, make the pages out of old images.
#include "recovery/log_merge.hpp"

#include <thread>

#include "tests/support/longer.hpp"
#include "tests/support/random_change.hpp"
#include "tests/unit/recovery/replay.hpp"

namespace recovery_test {
namespace {

using bufmgr::PageId;
using coherence::Errc;
using coherence::Result;

class Kept final : public recovery::LogSource {
 public:
  explicit Kept(std::vector<Record> records) : records_(std::move(records)) {}
  Result<std::span<const std::byte>> next() override {
    if (at_ == std::min(records_.size(), until_)) return Errc::kNotFound;
    return std::span<const std::byte>(records_[at_++]);
  }
  void put_back() override { --at_; }
  std::vector<Record>& records() { return records_; }
  void rewind() { at_ = 0; }
  void read_until(size_t end) { until_ = end; }
  size_t at() const { return at_; }

 private:
  std::vector<Record> records_;
  size_t at_ = 0, until_ = ~size_t{0};
};

class LogMerge : public ::testing::Test, public recovery::PageImages {
 protected:
  static constexpr int kNodes = 3;
  LogMerge() : cluster_({.nodes = kNodes, .frames = 32, .lazy_log = true, .keep_records = true}) {
    auto session = cluster_.session(0);
    pages_ = gcl_test::pages_of_two_memory_nodes(cluster_.pool(0), *session, 48);
    cluster_.end(0, std::move(session));
    change(20);
    remember();  // in the middle: what the logs have from before is there already
    change(80);
    for (int n = 0; n < kNodes; ++n) logs_.emplace_back(cluster_.log(n).records());
  }
  void change(int times) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 6; ++t) {
      threads.emplace_back([&, t] {
        auto session = cluster_.session(t % kNodes);
        std::mt19937_64 random(gcl_test::seed(times + t));
        for (int i = 0; i < times; ++i) gcl_test::random_change(cluster_.pool(t % kNodes), *session, pages_, random);
        cluster_.end(t % kNodes, std::move(session));
      });
    }
    for (auto& thread : threads) thread.join();
  }
  void remember() {
    auto session = cluster_.session(0);
    for (const PageId id : pages_) copy_to(cluster_.pool(0), *session, id, &images_[id.raw]);
    cluster_.end(0, std::move(session));
  }
  Result<std::byte*> image(PageId id) override {
    return images_.contains(id.raw) ? Result<std::byte*>(images_[id.raw].bytes) : Errc::kNotFound;
  }
  coherence::Status merge() {
    std::vector<recovery::LogSource*> sources;
    for (Kept& log : logs_) {
      log.rewind();
      sources.push_back(&log);
    }
    return recovery::apply_logs(sources, *this, &problem_);
  }
  void leave_out_others() {  // records of pages that no image is of: the allocator's
    for (Kept& log : logs_)
      std::erase_if(log.records(), [&](const Record& record) {
        bufmgr::RecordReader reader(record);
        const bufmgr::RecordPage* page = reader.next_page();
        return !images_.contains(page->page.raw);
      });
  }
  void expect_pages() {
    auto session = cluster_.session(0);
    for (const PageId id : pages_) {
      PageBytes now;
      copy_to(cluster_.pool(0), *session, id, &now);
      EXPECT_EQ(memcmp(now.bytes, images_[id.raw].bytes, coherence::kPageSize), 0) << "page " << id.raw;
    }
    cluster_.end(0, std::move(session));
  }

  gcl_test::Cluster cluster_;
  std::vector<PageId> pages_;
  Images images_;
  std::vector<Kept> logs_;
  coherence::Problem problem_;
};

TEST_F(LogMerge, MakesThePages) {
  leave_out_others();
  ASSERT_TRUE(merge().ok()) << problem_.text;
  expect_pages();
  ASSERT_TRUE(merge().ok()) << problem_.text;  // recovery.replay-again
  expect_pages();
}

TEST_F(LogMerge, OrderOfTheLogsDoesNotMatter) {
  leave_out_others();
  std::swap(logs_.front(), logs_.back());
  ASSERT_TRUE(merge().ok()) << problem_.text;
  expect_pages();
}

// recovery.merge-in-parts
TEST_F(LogMerge, ThreadsMakeAPartEach) {
  leave_out_others();
  constexpr uint64_t kParts = 3;
  class Part final : public recovery::PageImages {
   public:
    Part(recovery::PageImages& all, uint64_t part) : all_(all), part_(part) {}
    bool wants(PageId id) override { return id.number() % kParts == part_; }
    Result<std::byte*> image(PageId id) override { return all_.image(id); }

   private:
    recovery::PageImages& all_;
    const uint64_t part_;
  };
  std::vector<std::thread> threads;
  for (uint64_t part = 0; part < kParts; ++part)
    threads.emplace_back([this, part] {
      std::vector<Kept> logs = logs_;
      std::vector<recovery::LogSource*> sources;
      for (Kept& log : logs) sources.push_back(&log);
      Part images(*this, part);
      coherence::Problem problem;
      EXPECT_TRUE(recovery::apply_logs(sources, images, &problem).ok()) << problem.text;
    });
  for (auto& thread : threads) thread.join();
  expect_pages();
}

// recovery.merge-goes-on-later
TEST_F(LogMerge, GoesOnFromAnyPlacesUpToWhichLogsWereRead) {
  leave_out_others();
  std::mt19937_64 random(gcl_test::seed(4));
  std::vector<recovery::LogSource*> sources;
  for (Kept& log : logs_) sources.push_back(&log);
  uint32_t waited = 0;
  for (size_t part = 1; part <= 20; ++part) {
    for (Kept& log : logs_)  // some further than others
      log.read_until(std::max(log.at(), log.records().size() * part / 20 * (random() % 3 + 3) / 5));
    const auto waiting = recovery::apply_logs_so_far(sources, *this, &problem_);
    ASSERT_TRUE(waiting.ok()) << problem_.text;
    waited += *waiting;
  }
  for (Kept& log : logs_) log.read_until(log.records().size());
  const auto waiting = recovery::apply_logs_so_far(sources, *this, &problem_);
  ASSERT_TRUE(waiting.ok()) << problem_.text;
  EXPECT_EQ(*waiting, 0u) << problem_.text;
  EXPECT_GT(waited, 0u) << "no log ever waited for another";
  for (Kept& log : logs_) EXPECT_EQ(log.at(), log.records().size());
  expect_pages();
}

// recovery.gap-is-error
TEST_F(LogMerge, AMissingRecordIsNamed) {
  leave_out_others();
  auto& records = logs_[1].records();
  // One that a later one of another node builds on, and that the images lack.
  size_t lost = records.size();
  for (size_t i = records.size(); i-- > 0 && lost == records.size();) {
    bufmgr::RecordReader reader(records[i]);
    const bufmgr::RecordPage* page = reader.next_page();
    uint64_t version;
    memcpy(&version, images_[page->page.raw].bytes, sizeof version);
    for (const Record& other : logs_[2].records()) {
      bufmgr::RecordReader later(other);
      while (const bufmgr::RecordPage* there = later.next_page())
        if (there->page == page->page && there->version > page->version && page->version > version) lost = i;
    }
  }
  ASSERT_LT(lost, records.size());
  records.erase(records.begin() + ptrdiff_t(lost));
  EXPECT_EQ(merge().error(), Errc::kNotFound);
  EXPECT_NE(strstr(problem_.text, "the redo between them is missing"), nullptr) << problem_.text;
}

TEST_F(LogMerge, APageThatIsNotThereIsNamed) {
  EXPECT_EQ(merge().error(), Errc::kNotFound);
  EXPECT_NE(strstr(problem_.text, "there is no page"), nullptr) << problem_.text;
}

TEST_F(LogMerge, ALogThatCannotBeReadEndsIt) {
  class Broken final : public recovery::LogSource {
    Result<std::span<const std::byte>> next() override { return Errc::kSystem; }
  } broken;
  recovery::LogSource* sources[] = {&broken};
  EXPECT_EQ(recovery::apply_logs(sources, *this, &problem_).error(), Errc::kSystem);
}

}  // namespace
}  // namespace recovery_test
