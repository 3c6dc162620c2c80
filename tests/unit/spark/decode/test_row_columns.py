"""Requested columns of rows."""

import pytest

from pulsarbox.spark.decode.row_columns import ALL, BASIC, ColumnsError, chosen, with_value


def test_the_basic_columns_are_those_of_the_existing_connector() -> None:
    names = "__key __topic __messageId __publishTime __eventTime __messageProperties"
    assert [column.name for column in BASIC] == names.split()


def test_columns_are_chosen_by_word_or_by_name() -> None:
    assert chosen("basic") == BASIC
    assert chosen("ALL") == ALL
    assert [column.name for column in chosen("value, __KEY,__ledgerId")] == ["__key", "__ledgerId"]


def test_a_list_may_leave_the_value_out() -> None:
    assert with_value("basic") and with_value("__key,value")
    assert not with_value("__key")


def test_a_column_that_there_is_not_is_refused_with_the_nearest() -> None:
    with pytest.raises(ColumnsError, match="did you mean __ledgerId"):
        chosen("__ledgerid2")
