"""Names of functions."""

from proxy.tools.sheet.formulas import functions


def test_the_nexar_add_in_has_fourteen_functions_that_look_up_parts() -> None:
    names = [f.name for f in functions.FUNCTIONS.values() if f.dialect == "nexar" and f.looks_up]
    assert len(names) == 14


def test_the_octopart_add_in_has_eleven_functions_that_look_up_parts() -> None:
    names = [f.name for f in functions.FUNCTIONS.values() if f.dialect == "octopart" and f.looks_up]
    assert len(names) == 11


def test_the_google_script_s_functions_are_known() -> None:
    names = """DETAIL_URL DATASHEET_URL AVERAGE_PRICE DISTRIBUTOR_PRICE DISTRIBUTOR_STOCK DISTRIBUTOR_URL
        DISTRIBUTOR_MOQ
        DISTRIBUTOR_PACKAGING DISTRIBUTOR_LEAD_TIME DISTRIBUTOR_ORDER_MUTIPLE DISTRIBUTOR_SKU DESCRIPTION IMAGE"""
    assert all(functions.FUNCTIONS[f"OCTOPART_{name}"].looks_up for name in names.split())
    misspelt = functions.FUNCTIONS["OCTOPART_DISTRIBUTOR_ORDER_MUTIPLE"]
    assert misspelt.result == functions.FUNCTIONS["OCTOPART_DISTRIBUTOR_ORDER_MULTIPLE"].result


def test_names_are_found_in_any_case_and_with_any_of_excel_s_prefixes() -> None:
    for written in ("_xll.{}(", "_xlfn.{}(", "_xludf.{}(", "_xlfn._xlws.{}(", "@{}(", "[1]!{}(", "{}(", "@_xll.{}("):
        for name in ("NEXAR_SUPPLY_LOGIN", "nexar_supply_login", "Nexar_Supply_Login"):
            assert functions.plain_name(written.format(name)) == "NEXAR_SUPPLY_LOGIN"


def test_formulas_without_such_a_function_are_not_parsed() -> None:
    assert functions.may_contain("1+_xll.nexar_supply_version()")
    assert functions.may_contain("octopart_set_user(A1)")
    assert not functions.may_contain("SUM(A1:A7)")
