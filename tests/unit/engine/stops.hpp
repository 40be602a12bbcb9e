// Stop points in tests of the engine: a session's thread stands still where its test says.
//
//   Stops stops;                                              // before any session begins
//   Stops::At commit = stops.attach(StopPoint::kTxnCommitting, worker.session());
//   std::thread thread([&] { worker.commit(); });
//   commit.reached();                                         // its thread stands there
//   ...                                                       // what others do meanwhile
//   commit.go_on();
//   thread.join();
#pragma once

#include <gtest/gtest.h>

#include "bufmgr/buffer_pool.hpp"
#include "extension/engine/stop/stop_table.hpp"
#include "tests/support/eventually.hpp"

namespace engine_test {

class Stops final : public engine::StopHost {
 public:
  Stops() { engine::stop_host.store(this); }
  ~Stops() override { engine::stop_host.store(nullptr); }
  Stops(const Stops&) = delete;

  // An attachment: one arrival of one session.
  class At {
   public:
    At(engine::StopTable& table, engine::StopPoint point, uint32_t process)
        : table_(table), point_(point), process_(process) {}
    void reached() {
      EXPECT_TRUE(gcl_test::eventually([&] { return table_.stands(point_, process_); }))
          << "nobody came to " << engine::stop_point_name(point_);
    }
    void go_on() { EXPECT_TRUE(table_.wakeup(point_, process_)) << engine::stop_point_name(point_); }

   private:
    engine::StopTable& table_;
    engine::StopPoint point_;
    uint32_t process_;
  };
  At attach(engine::StopPoint point, bufmgr::Session& session, uint32_t arrival = 1) {
    EXPECT_TRUE(table_.attach({point, number_of(session), arrival}));
    return At(table_, point, number_of(session));
  }

  void reached(engine::StopPoint point, bufmgr::Session& session) noexcept override {
    EXPECT_EQ(session.guards_held(), 0) << engine::stop_point_name(point);  // stop.nothing-latched
    if (!table_.awaited(point)) return;
    engine::StopStand stand;
    table_.arrive(point, number_of(session), stand);
  }

 private:
  static uint32_t number_of(bufmgr::Session& session) {
    return uint32_t(session.pool().node().value + 1) << 16 | session.id().value;
  }
  engine::StopTable table_;
};

}  // namespace engine_test
