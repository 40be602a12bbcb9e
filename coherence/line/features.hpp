// Features: the parts of the protocol that can be switched off by name, per node, to see what each is worth.  Without
// any of them the protocol is safe; without some of them a requester may wait for very long (protocol.md, "Fairness,
// and switches").
//
//   Problem problem;
//   auto features = Features::parse("-forwarding,-lease", &problem);  // all but these; "forwarding,lease": only these
//   node->set_features(*features);                                    // before its sessions are made
//
// Nodes of one pool may differ: each follows its own.
#pragma once

#include <cstdint>

#include "coherence/base/result.hpp"

namespace coherence {

struct Problem;

enum class Feature : uint8_t {
  kForwarding,      // a grant carries the page; else the requester reads the pool
  kEarlyAnswers,    // a grant, and Done, leave when their batch is posted; else when it is complete
  kHandOver,        // the owner gives the requester its ownership; else it gives it up, and the requester tries again
  kClaim,           // a writer takes the word over sharers, then asks them; else asks first, and tries again
  kHints,           // a refusal says which node has the page, if known, and it is asked next; else the word is
  kJoin,            // a node that has just lost a page asks the taker, which adds its bit; else the word is asked
  kUpgrade,         // S becomes M in one CAS; else the share is given up, and the page fetched as from I
  kTieBreak,        // of two upgraders the lower id wins; else both may have to fall back
  kAgeing,          // a request's priority grows with each refusal; else it stays 0
  kMatching,        // a writer that had to wait keeps a page from readers that waited less
  kStandBack,       // readers that made way for a refused writer wait a while before they fetch again
  kLease,           // the node's own processes have gamma turns while a peer waits; else as many as they like
  kResendInterval,  // where it was refused for now, a request is sent again after C * RTT / refusals; else at once
  kCount,
};
inline constexpr int kFeatures = int(Feature::kCount);
const char* feature_name(Feature) noexcept;

class Features {
 public:
  static constexpr Features all() { return Features((1u << kFeatures) - 1); }
  static constexpr Features none() { return Features(0); }
  // Names with commas between them: only these.  Names that begin with '-': all but these.  "all" and "none" are names,
  // too.  kNotFound: another word, or both kinds of them; the problem names those there are.
  static Result<Features> parse(const char* text, Problem*);

  constexpr bool has(Feature f) const { return bits_ >> int(f) & 1; }
  constexpr Features with(Feature f) const { return Features(bits_ | 1u << int(f)); }
  constexpr Features without(Feature f) const { return Features(bits_ & ~(1u << int(f))); }
  constexpr bool operator==(const Features&) const = default;

 private:
  explicit constexpr Features(uint32_t bits) : bits_(bits) {}
  uint32_t bits_;
};

}  // namespace coherence
