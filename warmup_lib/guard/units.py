"""Units that follow a number, over all languages; elsewhere these words mean nothing to the guard.

A line is `id: names`, lower case, without accents. Left out is what is a common word after a number
too: "in" (inch), "a" (ampere), "us" (microsecond).
"""

from __future__ import annotations

UNITS = """
%: % percent prozent
‰: ‰ permille promille
bp: bps bp
night: night nights nacht nachte nachten noche noches nuit nuits notte notti noite noites 晚
d: day days tag tage tagen dia dias jour jours giorno giorni 天 日
w: week weeks wk wks woche wochen semana semanas semaine semaines settimana settimane 周 週間 个星期
fortnight: fortnight fortnights
mo: month months monat monate monaten mes meses mois mese mesi 个月 ヶ月 か月
y: year years yr yrs jahr jahre jahren ano anos an ans anno anni 年
decade: decade decades jahrzehnt jahrzehnte decada decadas decennie decennies decennio decenni
century: century centuries jahrhundert jahrhunderte siglo siglos siecle siecles secolo secoli seculo
h: hour hours hr hrs h stunde stunden hora horas heure heures ora ore 小时 时间 時間
min: minute minutes min mins minuten minuto minutos minuti 分钟 分
s: second seconds sec secs s sekunde sekunden segundo segundos secondes secondi 秒
ms: ms millisecond milliseconds millisekunde millisekunden milisegundo milisegundos 毫秒
μs: μs microsecond microseconds mikrosekunde mikrosekunden 微秒
ns: ns nanosecond nanoseconds nanosekunde nanosekunden 纳秒
am: am
pm: pm
k: k
mm: mm millimeter millimeters millimetre millimetres 毫米
cm: cm centimeter centimeters centimetre centimetres zentimeter centimetro centimetros 厘米
m: m meter meters metre metres metern metros metri 米
km: km kilometer kilometers kilometre kilometres kilometern kilometro kilometros chilometri 公里
mi: mi mile miles meile meilen milla millas miglia
ft: ft foot feet fuss
inch: inch inches zoll
yd: yd yard yards
nm: nm nanometer nanometers
acre: acre acres
hectare: ha hectare hectares hektar
g: g gram grams gramm gramme grammes gramo gramos grammi 克
mg: mg milligram milligrams milligramm miligramo miligramos milligrammi 毫克
μg: mcg ug μg microgram micrograms mikrogramm 微克
kg: kg kgs kilo kilos kilogram kilograms kilogramm kilogramo kilogramos 公斤 千克
lb: lb lbs
oz: oz ounce ounces unze unzen onza onzas
stone: stone stones
t: ton tons tonne tonnes tonnen tonelada toneladas tonnellate 吨
l: l liter liters litre litres litern litro litros litri 升
ml: ml milliliter milliliters millilitre millilitres mililitro mililitros 毫升
cl: cl
fl: fl
cup: cup cups tasse tassen taza tazas tasses tazze
pint: pint pints
gal: gal gallon gallons
tbsp: tbsp tablespoon tablespoons
tsp: tsp teaspoon teaspoons
byte: byte bytes
bit: bit bits
kb: kb kilobyte kilobytes
mb: mb megabyte megabytes
gb: gb gigabyte gigabytes
tb: tb terabyte terabytes
pb: pb petabyte petabytes
kib: kib
mib: mib
gib: gib
tib: tib
kbit: kbit kbps
mbit: mbit mbps
gbit: gbit gbps
hz: hz hertz
khz: khz
mhz: mhz
ghz: ghz
v: v volt volts
mv: mv
kv: kv
amp: amp amps ampere amperes
ma: milliamp milliamps
mah: mah
ohm: ohm ohms ω
watt: w watt watts
kw: kw kilowatt kilowatts
mw: mw megawatt megawatts
gw: gw gigawatt gigawatts
wh: wh
kwh: kwh
mwh: mwh
j: j joule joules
kj: kj
cal: cal calorie calories kalorien caloria calorias
kcal: kcal
hp: hp ps horsepower
psi: psi
bar: bar bars
pa: pa pascal
hpa: hpa
kpa: kpa
mph: mph
kmh: kmh kph
knot: knot knots knoten
rpm: rpm
px: px pixel pixels
dpi: dpi
ppm: ppm
db: db decibel decibels dezibel
c: c celsius
f: f fahrenheit
kelvin: kelvin
"""
