#include "tools/gclctl/cut.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cstdio>
#include <future>
#include <thread>

#include "coherence/region/since_save.hpp"
#include "tools/gclctl/failure.hpp"

namespace gclctl {
namespace {

constexpr int kAttempts = 5;
constexpr std::chrono::milliseconds kHoldMax{2000}, kPause{500};

// What a primary has answered, or why there is no answer.
struct Held {
  std::string schema, position, problem;
};
struct Released {
  bool in_time = false;
  std::string problem;
};

// Asks all at the same time.  `ask` gives an Answer, or fails.
template <class Answer, class Ask>
std::map<int, Answer> ask_all(const std::map<int, std::unique_ptr<Connection>>& connections, Ask ask) {
  std::map<int, std::future<Answer>> asked;
  for (const auto& [k, connection] : connections)
    asked[k] = std::async(std::launch::async, [&ask, k = k, to = connection.get()] {
      Answer answer;
      try {
        answer = ask(k, *to);
      } catch (const Failure& failure) {
        answer.problem = fmt::format("primary {}: {}", k, failure.what());
      }
      return answer;
    });
  std::map<int, Answer> answers;
  for (auto& [k, answer] : asked) answers[k] = answer.get();
  return answers;
}

template <class Answer>
bool all_good(const std::map<int, Answer>& answers, std::string* problem) {
  for (const auto& [k, answer] : answers)
    if (!answer.problem.empty()) {
      *problem = answer.problem;
      return false;
    }
  return true;
}

// In a transaction, in which the extension's schema keeps its name.
Held hold(Connection& primary) {
  const std::string schema = primary.begin();
  if (schema.empty()) fail("the extension is gone, or does not answer");
  const auto rows =
      primary.require(fmt::format("SELECT {}.gcl_hold_commits({})", schema, kHoldMax.count()), kHoldMax * 2);
  return {schema, rows.at(0).at(0), ""};
}

Released release(Connection& primary, const Held& held) {
  Released released;
  if (held.problem.empty()) {
    const auto rows = primary.require(fmt::format("SELECT {}.gcl_release_commits()", held.schema), kHoldMax);
    released.in_time = rows.at(0).at(0) == "t";
  }
  (void)primary.require("ROLLBACK", kHoldMax);
  return released;
}

}  // namespace

std::string text_of_time(std::chrono::system_clock::time_point time) {
  using namespace std::chrono;
  const auto seconds = floor<std::chrono::seconds>(time);
  return fmt::format("{:%Y-%m-%d %H:%M:%S}.{:06d}+00", fmt::gmtime(system_clock::to_time_t(seconds)),
                     duration_cast<microseconds>(time - seconds).count());
}

std::string text_of_position(uint64_t position) {
  return fmt::format("{:X}/{:X}", position >> 32, position & 0xffffffff);
}

uint64_t position_in(const std::string& text) {
  unsigned high, low;
  char behind;
  if (sscanf(text.c_str(), "%X/%X%c", &high, &low, &behind) != 2) fail("\"{}\" is no position in a log", text);
  return uint64_t{high} << 32 | low;
}

AllPrimaries::AllPrimaries(const Cluster& c)
    : journal_(coherence::BesideCopy(c.saved_pool().c_str(), coherence::BesideCopy::kJournal).text) {
  std::string database;
  for (const int k : c.chosen(0)) {
    if (c.postmaster(k) == 0)
      fail(
          "primary {} does not run: a backup is taken while all primaries do, so that each says where its log has what "
          "the others have seen. Start it, or take it out of the cluster with: gclctl remove-primary {} --node {}",
          k, c.dir.string(), k);
    connection_[k] = with_views(c, k, connect(c, k), &database);
    if (connection_[k] == nullptr)
      fail("primary {} has no database with the extension that answers: CREATE EXTENSION gcl in one first", k);
  }
}

bool AllPrimaries::try_cut(Cut* cut, std::string* problem) {
  const auto began = std::chrono::steady_clock::now();
  const auto held = ask_all<Held>(connection_, [](int, Connection& primary) { return hold(primary); });
  const bool all = all_good(held, problem);
  cut->time = std::chrono::system_clock::now();
  std::error_code none;
  const uint64_t bytes = fs::file_size(journal_, none);
  cut->journal_bytes = none ? 0 : bytes;
  const auto released =
      ask_all<Released>(connection_, [&](int k, Connection& primary) { return release(primary, held.at(k)); });
  cut->held_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count();
  if (!all || !all_good(released, problem)) return false;
  for (const auto& [k, one] : released)
    if (!one.in_time) {
      *problem = fmt::format("primary {}: its commits were held for {} ms, and others were not ready by then", k,
                             kHoldMax.count());
      return false;
    }
  for (const auto& [k, one] : held) cut->position[k] = position_in(one.position);
  return true;
}

Cut AllPrimaries::take_cut() {
  std::string problem;
  for (int i = 0; i < kAttempts; ++i) {
    if (i > 0) std::this_thread::sleep_for(kPause);
    Cut cut;
    if (try_cut(&cut, &problem)) return cut;
  }
  fail("no moment was found, {} times, at which no primary was in the middle of a commit; {}", kAttempts, problem);
}

}  // namespace gclctl
