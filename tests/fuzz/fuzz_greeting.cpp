// Greetings: what is read of any bytes is what would be written, and is judged; what is said of the others is fit for a
// log.
#include <cstring>
#include <memory>
#include <span>

#include "coherence/base/verify.hpp"
#include "coherence/transport/net/admission.hpp"
#include "coherence/transport/net/hello.hpp"
#include "coherence/transport/net/quoted.hpp"

namespace {

using namespace coherence;       // NOLINT
using namespace coherence::net;  // NOLINT

void printable(const char* text) {
  for (; *text; text++) VERIFY(*text >= ' ' && *text <= '~');
}

void hello(std::span<const std::byte, kHelloBytes> bytes) {
  Hello read;
  Problem problem;
  if (!read_hello(bytes, &read, &problem)) return printable(problem.text);
  std::byte again[kHelloBytes];
  Hello same;
  write_hello(read, again);
  VERIFY(read_hello(again, &same, &problem).ok());
  VERIFY(same.from == read.from && same.to == read.to && same.cluster == read.cluster && same.link == read.link);
  VERIFY(same.received == read.received && same.window == read.window && same.resumes == read.resumes);

  Admission admission(Who::memory_node(MemoryNodeId{0}, 9), 0, 2);
  for (int turn = 0; turn < 2; turn++) {
    const Admission::Decision decision = admission.judge(read);
    printable(decision.reason);
    if (decision.refusal != Refusal::kNone) return;
    VERIFY(!read.resumes || turn > 0);
    VERIFY((decision.link != nullptr) == (turn > 0) && !decision.replaced);
    static std::unique_ptr<Link> link;
    if (turn == 0) {
      link = Link::accepting({Who::memory_node(MemoryNodeId{0}, 9), read.from, 0, read.link, 4096}, 1);
      admission.begun(*link);
    }
  }
}

void welcome(std::span<const std::byte, kWelcomeBytes> bytes) {
  Welcome read;
  Problem problem;
  if (!read_welcome(bytes, &read, &problem)) return printable(problem.text);
  printable(Quoted(read.reason).text);
  VERIFY(read.refusal != Refusal::kNone || (read.from.start != 0 && read.window != 0));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::byte bytes[kWelcomeBytes] = {};
  static_assert(kWelcomeBytes >= kHelloBytes);
  if (size > 0) memcpy(bytes, data, size < sizeof bytes ? size : sizeof bytes);
  hello(std::span(bytes).first<kHelloBytes>());
  welcome(bytes);
  return 0;
}
