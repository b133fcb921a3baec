// Which statuses are worth another try, all of them: against the specification's own words, and against what QEMU's controller
// says with its Do Not Retry bit.
#include "qemu_bed.hpp"

#include "penstock/core/retry_policy.hpp"
#include "penstock/host/error.hpp"

#include <map>
#include <set>
#include <string>

namespace penstock::test_support {
namespace {

/// Statuses after which the specification lets the same command be submitted to the same controller again, unless DNR is set.
/// Read from the base specification 2.1, not from the table under test.
const std::map<u16, std::string> worth_another_try = {
    {0x004, "the transfer failed, not the command"},
    {0x005, "ended by a power loss notification"},
    {0x006, "reported as an asynchronous event as well"},
    {0x007, "ended by an Abort"},
    {0x008, "ended by the deletion of its queue"},
    {0x01d, "prohibited while a sanitize operation is in progress, and no longer"},
    {0x021, "the host should retry; DNR is always 0"},
    {0x022, "likely to succeed when retried; persistent after four"},
    {0x024, "DNR says whether it may succeed later"},
    {0x082, "DNR says whether it may succeed later"},
    {0x084, "may succeed if resubmitted; DNR is always 0"},
    {0x300, "retries follow DNR"},
    {0x303, "to be retried after the transition"},
    {0x360, "of the path"},
    {0x370, "of the path"},
    {0x371, "ended by the host"},
};

/// Codes that the specifications define (base 2.1; NVM and zoned namespace command sets), by status code type.
std::set<u16> defined() {
  std::set<u16> all;
  const auto add = [&](u16 first, u16 last) {
    for (u16 k = first; k <= last; ++k) all.insert(k);
  };
  add(0x001, 0x016), add(0x018, 0x02a), add(0x080, 0x084);
  add(0x100, 0x103), add(0x105, 0x116), add(0x118, 0x12d), add(0x180, 0x183), add(0x1b6, 0x1bf);
  add(0x280, 0x288);
  add(0x300, 0x303), add(0x360, 0x360), add(0x370, 0x371);
  return all;
}

status completed(u16 number, bool do_not_retry) {
  const u16 bits = static_cast<u16>(number | (do_not_retry ? nvme::do_not_retry : 0));
  return nvme::completion_status(nvme::make_outcome(7, 1, bits));
}

TEST(nvme_status_test, another_try_is_made_after_those_that_the_specification_says_and_no_others) {
  const retry_policy policy;
  for (u16 number = 1; number < 0x800; ++number) {
    EXPECT_EQ(worth_another_try.contains(number), policy.helps(completed(number, false))) << std::hex << number;
    EXPECT_FALSE(policy.helps(completed(number, true))) << "DNR: " << std::hex << number;
    EXPECT_FALSE(policy.retries(completed(number, false), policy.attempts)) << std::hex << number;
  }
}

TEST(nvme_status_test, every_status_that_is_defined_is_named_and_no_two_alike) {
  std::set<std::string> names;
  for (u16 number = 1; number < 0x800; ++number) {
    char const* const name = name_of_nvme(number);
    EXPECT_EQ(defined().contains(number), name != nullptr) << std::hex << number;
    if (name == nullptr) continue;
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_NE(describe(completed(number, true)).find(std::string("(") + name + ")"), std::string::npos)
        << describe(completed(number, true));
  }
  EXPECT_EQ(names.size(), std::size(nvme_statuses)) << "a number stands in the table twice";
}

TEST(nvme_status_test, a_policy_of_one_s_own_chooses_by_class) {
  const retry_policy media{.classes = bit_of(error_class::media)}, space{.classes = bit_of(error_class::space)};
  for (const u16 number : std::initializer_list<u16>{0x280, 0x281, 0x282, 0x283, 0x284, 0x287, 0x288})
    EXPECT_TRUE(media.helps(completed(number, false)));
  for (const u16 number : std::initializer_list<u16>{0x285, 0x286, 0x006, 0x081})
    EXPECT_FALSE(media.helps(completed(number, false))) << number;
  for (const u16 number : std::initializer_list<u16>{0x081, 0x115, 0x126})
    EXPECT_TRUE(space.helps(completed(number, false))) << number;
  EXPECT_FALSE(media.helps(completed(0x281, true)));
}

/// Statuses of QEMU's controller as they come, DNR and all.
class qemu_status_test : public qemu_drive_test {
 protected:
  status run(nvme::submission_entry const& command) {
    host_queue queue(*drive_, 1, 8, 8);
    queue.submit(command);
    std::optional<completion> ended;
    backoff wait(10 * one_second_ns);
    do {
      queue.poll();
      ended = queue.harvest();
    } while (!ended.has_value() && wait.pause());
    EXPECT_TRUE(ended.has_value());
    return nvme::completion_status(queue.rings().cq[0].outcome);
  }

  std::unique_ptr<pcie_controller> drive_;
};

TEST_F(qemu_status_test, what_its_controller_forbids_to_retry_is_not_retried_by_the_table_either) {
  drive_ = std::make_unique<pcie_controller>(
      start({{{{4 * mebibyte, 512, ""}, {4 * mebibyte, 512, "", {}, ",zoned=true,zoned.zone_size=1M"}}, ""}}));
  data_buffer buffer(512);
  nvme::submission_entry wrong_opcode = buffer.read(1, 0), beyond = buffer.read(1, 8192), nowhere = buffer.read(77, 0),
                         invalid = buffer.read(0x10000, 0);
  wrong_opcode.opcode = 0x7f;
  // In the middle of a zone: its write pointer is at its begin.
  nvme::submission_entry astray = buffer.read(2, 9);
  astray.opcode = static_cast<u8>(nvme::opcode::write);
  std::vector<std::pair<nvme::submission_entry, u16>> cases = {
      {wrong_opcode, 0x001}, {beyond, 0x080}, {nowhere, 0x002}, {invalid, 0x00b}};
  // QEMU 10 attaches a zoned namespace only to a host that selects its command set.
  if (run(buffer.read(2, 0)).ok()) cases.emplace_back(astray, u16{0x1bc});
  for (auto const& [command, number] : cases) {
    const status outcome = run(command);
    EXPECT_EQ((status{status_domain::nvme, number}), outcome) << describe(outcome);
    EXPECT_TRUE(outcome.retry_is_vain()) << describe(outcome);
    EXPECT_FALSE(retry_policy{}.helps({status_domain::nvme, outcome.number()})) << describe(outcome);
  }
}

}  // namespace
}  // namespace penstock::test_support
