"""A late lane is told at once and once a minute, not at each poll of the relay."""

from ackbox.app.lane_alarm import LATE_SECONDS, REPEAT_SECONDS, LaneAlarm

LATE = LATE_SECONDS + 1


def test_a_late_lane_is_told_at_once_and_then_once_in_a_while() -> None:
    """A terminal with `ackbox up` stays readable while a lane waits."""
    alarm = LaneAlarm()
    told = [now for now in range(121) if alarm.is_due("mails", LATE + now, float(now))]
    assert told == [0, REPEAT_SECONDS, 2 * REPEAT_SECONDS]


def test_lanes_are_told_apart_and_one_that_caught_up_begins_anew() -> None:
    """The second time that a lane falls behind is news again."""
    alarm = LaneAlarm()
    assert alarm.is_due("mails", LATE, 0.0)
    assert alarm.is_due("cards", LATE, 1.0)
    assert not alarm.is_due("mails", LATE_SECONDS, 2.0)
    assert alarm.is_due("mails", LATE, 3.0)
