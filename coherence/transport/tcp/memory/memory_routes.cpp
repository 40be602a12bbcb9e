#include "coherence/transport/tcp/memory/memory_routes.hpp"

#include <bit>

#include "coherence/base/text.hpp"
#include "coherence/base/verify.hpp"
#include "coherence/transport/tcp/memory/batch_frame.hpp"

namespace coherence::tcp {

static_assert(kRequestBytesMax <= net::kPayloadMax && kResultBytesMax <= net::kPayloadMax);

MemoryRoutes::MemoryRoutes(Port& port, net::Links& links, Log& log)
    : port_(port), links_(links), log_(log), frame_(new std::byte[kRequestBytesMax]) {
  for (MemoryRoute& route : route_) route.of = this;
}

MemoryRoutes::~MemoryRoutes() {
  port_.close();
  take();
  for (MemoryRoute& route : route_) {
    if (route.link != nullptr) {
      route.link->context = nullptr;
      route.link->end("the node ends");
    }
    give_up(route);
  }
}

Status MemoryRoutes::add(MemoryNodeId id, const net::Endpoints& at, Problem* problem) {
  VERIFY(id.value < kMemoryNodesMax && route_[id.value].link == nullptr);
  auto link = links_.dial(net::Who::memory_node(id, 0), at, problem);
  if (!link) return link.error();
  MemoryRoute& route = route_[id.value];
  route.link = *link;
  route.link->context = static_cast<Route*>(&route);
  return {};
}

void MemoryRoutes::end(const char* reason) noexcept {
  for (MemoryRoute& route : route_)
    if (route.link != nullptr) route.link->end(reason);
}

bool MemoryRoutes::reaches(MemoryNodeId id) const noexcept {
  const net::Link* const to = link(id);
  return to != nullptr && to->connected() && (path_ == nullptr || path_->is_open(id));
}

void MemoryRoutes::take() {
  if (path_ != nullptr) path_->poll(*this);
  port_.take_posted([this](PortPlace& place, uint32_t entries) {
    for (; entries != 0; entries &= entries - 1) {
      PortEntry& entry = place.entry[std::countr_zero(entries)];
      entry.place = &place;
      VERIFY(entry.to.value < kMemoryNodesMax);
      MemoryRoute& route = route_[entry.to.value];
      if (route.link == nullptr) {
        finish(entry, false);  // tcp.link-over
        continue;
      }
      route.posted.push(entry);
      send(route);
    }
  });
}

void MemoryRoutes::send(MemoryRoute& route) {
  while (route.posted.first() != nullptr && send_first(route)) {
  }
}

// False: it has to wait.
bool MemoryRoutes::send_first(MemoryRoute& route) {
  PortEntry& entry = *route.posted.first();
  if (path_ == nullptr ? !send_frame(route, entry) : !path_->is_open(entry.to) || !path_->post(entry.to, entry))
    return false;
  route.posted.pop();
  route.sent.push(entry);
  return true;
}

bool MemoryRoutes::send_frame(MemoryRoute& route, PortEntry& entry) {
  const uint32_t bytes = request_bytes(entry.ops());
  entry.result_bytes = net::frame_bytes(result_bytes_max(entry.ops()));
  if (!route.link->room_for(bytes)) return false;  // tcp.window-bounded
  if (route.awaited + entry.result_bytes + kOtherBytesMax > route.link->peer_window())
    return false;  // tcp.answers-have-room
  entry.tag = route.next_tag++;
  encode_request(entry.to, entry.tag, entry.ops(), frame_.get());
  if (!route.link->send(kRequestFrame, std::span<const std::byte>(frame_.get(), bytes))) return false;
  route.awaited += entry.result_bytes;
  return true;
}

void MemoryRoutes::completed(MemoryNodeId id) {
  MemoryRoute& route = route_[id.value];
  PortEntry* const entry = route.sent.first();
  VERIFY(entry != nullptr);
  route.sent.pop();
  finish(*entry, true);
  if (route.link != nullptr) send(route);
}

// The link's end says so to those that it concerns, and gives up what is under way.
void MemoryRoutes::broken(MemoryNodeId id, const char* why) {
  net::Link* const to = link(id);
  if (to == nullptr) return;
  Text text;
  log_.line(text.add("ends the link to %s: %s", to->peer().name().text, why).c_str());
  to->end(why);
}

void MemoryRoutes::MemoryRoute::frame(net::Link& l, uint16_t type, std::span<const std::byte> payload) {
  const bool of_path = type == kPathFrame && of->path_ != nullptr;
  if (Route* const other = of->other(l); type != kResultFrame && !of_path && other != nullptr)
    return other->frame(l, type, payload);
  PortEntry* const entry = of->path_ == nullptr ? sent.first() : nullptr;
  Problem problem;
  if (of_path) {
    if (of->path_->answer(l, payload, &problem)) return;
  } else if (type != kResultFrame)
    problem.write("a frame of type %u", unsigned{type});
  else if (entry == nullptr)
    problem.write("a result that nobody waits for");
  else if (decode_result(payload, entry->to, entry->tag, entry->ops(), &problem)) {
    sent.pop();
    awaited -= entry->result_bytes;
    of->finish(*entry, true);
    return of->send(*this);
  }
  Text text;  // tcp.nothing-believed
  of->log_.line(text.add("ends the link to %s, which sent %s", l.peer().name().text, problem.text).c_str());
  l.end(problem.text);
}

void MemoryRoutes::finish(PortEntry& entry, bool known) {
  port_.done(*entry.place, int(&entry - entry.place->entry), known);
}

void MemoryRoutes::give_up(MemoryRoute& route) {
  if (path_ != nullptr) path_->close(MemoryNodeId{uint8_t(&route - route_)});  // tcp.path-of-link
  for (EntryQueue* queue : {&route.sent, &route.posted})
    while (PortEntry* entry = queue->first()) {
      queue->pop();  // before its session has it again
      finish(*entry, false);
    }
  route.awaited = 0;
}

void MemoryRoutes::MemoryRoute::begun(net::Link& l) {
  if (l.peer_window() < net::frame_bytes(kResultBytesMax) + kOtherBytesMax)
    return l.end("its window is too small for a result");
  Text text;
  of->log_.line(text.add("connected to %s", l.peer().name().text).c_str());
  if (Route* const other = of->other(l)) other->begun(l);
  if (Problem why; of->path_ != nullptr && !of->path_->ask(l, &why)) return l.end(why.text);
  of->send(*this);
}

void MemoryRoutes::MemoryRoute::disconnected(net::Link& l) {
  Text text;
  of->log_.line(text.add("the connection to %s broke: %s", l.peer().name().text, l.reason()).c_str());
}

void MemoryRoutes::MemoryRoute::reconnected(net::Link& l) {
  Text text;
  of->log_.line(text.add("connected again to %s", l.peer().name().text).c_str());
  of->send(*this);
}

void MemoryRoutes::MemoryRoute::room(net::Link& l) {
  of->send(*this);
  if (Route* const other = of->other(l)) other->room(l);
}

// tcp.link-over
void MemoryRoutes::MemoryRoute::over(net::Link& l) {
  link = nullptr;
  Text text;
  of->log_.line(text.add("the link to %s is over: %s", l.peer().name().text, l.reason()).c_str());
  of->give_up(*this);
  if (Route* const other = of->other(l)) other->over(l);
}

}  // namespace coherence::tcp
