"""Names of states that `things` does not have: each stands for itself, whatever its capitals."""

from __future__ import annotations

COUNTRIES = """
    afghanistan albania algeria andorra angola argentina armenia azerbaijan bahamas bahrain
    bangladesh barbados belarus belize benin bhutan bolivia bosnia botswana brunei bulgaria
    burundi cambodia cameroon chad chile colombia comoros congo croatia cuba cyprus czechia
    djibouti dominica ecuador eritrea estonia eswatini ethiopia fiji finland gabon gambia georgia
    ghana grenada guatemala guinea guyana haiti honduras hungary iceland indonesia iran iraq
    israel jamaica jordan kazakhstan kenya kosovo kuwait kyrgyzstan laos latvia lebanon lesotho
    liberia libya liechtenstein lithuania luxembourg madagascar malawi malaysia maldives mali
    malta mauritania mauritius moldova mongolia montenegro mozambique myanmar namibia nepal
    nicaragua niger nigeria oman pakistan palestine panama paraguay peru philippines qatar romania
    rwanda senegal serbia seychelles slovakia slovenia somalia sudan suriname syria taiwan
    tajikistan tanzania togo tonga tunisia turkmenistan uganda ukraine uruguay uzbekistan vanuatu
    venezuela yemen zambia zimbabwe
"""

COUNTRIES_OF_TWO_WORDS = (
    "burkina faso; cape verde; costa rica; czech republic; dominican republic; el salvador; "
    "ivory coast; north korea; north macedonia; puerto rico; san marino; saudi arabia; sierra "
    "leone; south africa; south korea; sri lanka"
)
