"""States, their people and currency codes that `things` does not have: each for itself."""

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

PEOPLES = """
    afghan albanian algerian american angolan argentinian armenian australian austrian belarusian
    belgian bolivian bosnian brazilian british bulgarian cambodian cameroonian canadian chilean
    colombian croatian cuban cypriot czech danish dutch egyptian estonian ethiopian finnish french
    georgian german ghanaian greek hungarian icelandic indian indonesian iranian iraqi irish israeli
    italian jamaican jordanian kazakh kenyan korean kuwaiti latvian lebanese libyan lithuanian
    malaysian maltese mexican moldovan moroccan nepali nigerian norwegian pakistani peruvian
    philippine portuguese qatari romanian russian saudi scottish senegalese serbian singaporean
    slovak slovenian somali spanish sudanese swedish swiss syrian taiwanese tanzanian thai tunisian
    turkish ugandan ukrainian uruguayan venezuelan vietnamese welsh
"""

CODES = """
    AED AFN AMD ANG AOA ARS AWG AZN BBD BDT BGN BHD BIF BMD BND BOB BSD BTN BWP BYN BZD CDF CLP COP
    CRC CVE CZK DJF DOP DZD EGP ERN ETB FJD GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS IQD IRR ISK
    JMD JOD KES KGS KHR KRW KWD KYD KZT LBP LKR LYD MAD MDL MGA MKD MMK MNT MRU MUR MVR MWK MYR MZN
    NAD NGN NIO NPR NZD OMR PGK PHP PKR PYG QAR RON RSD RWF SAR SBD SCR SDG SGD SLE SOS SRD SSP SZL
    THB TJS TMT TND TRY TTD TWD TZS UAH UGX UYU UZS VES VND XAF XCD XOF XPF YER ZAR ZMW
"""
"""Currencies, written in capitals only: some are words."""
