import { encodeQR } from 'qr'

export type CorrectionLevel = 'low' | 'medium' | 'quartile' | 'high'
type QrEncoding = 'numeric' | 'alphanumeric' | 'byte'
export type QrPlan = {
  readonly version: number
  readonly level: CorrectionLevel
  readonly encoding: QrEncoding
}

/** The symbol with its quiet zone around it; true is dark. Rows and columns are equally many. */
export type QrMatrix = readonly (readonly boolean[])[]

/** ISO/IEC 18004 asks for four light modules on every side: readers fail without them. */
export const QUIET_ZONE_MODULES = 4

/** Data codewords (bytes) of versions 1 … 40; ISO/IEC 18004:2024 table 7. */
// biome-ignore format: ten versions a line
export const dataCodewords: Readonly<Record<CorrectionLevel, readonly number[]>> = {
  low: [
    19, 34, 55, 80, 108, 136, 156, 194, 232, 274,
    324, 370, 428, 461, 523, 589, 647, 721, 795, 861,
    932, 1006, 1094, 1174, 1276, 1370, 1468, 1531, 1631, 1735,
    1843, 1955, 2071, 2191, 2306, 2434, 2566, 2702, 2812, 2956,
  ],
  medium: [
    16, 28, 44, 64, 86, 108, 124, 154, 182, 216,
    254, 290, 334, 365, 415, 453, 507, 563, 627, 669,
    714, 782, 860, 914, 1000, 1062, 1128, 1193, 1267, 1373,
    1455, 1541, 1631, 1725, 1812, 1914, 1992, 2102, 2216, 2334,
  ],
  quartile: [
    13, 22, 34, 48, 62, 76, 88, 110, 132, 154,
    180, 206, 244, 261, 295, 325, 367, 397, 445, 485,
    512, 568, 614, 664, 718, 754, 808, 871, 911, 985,
    1033, 1115, 1171, 1231, 1286, 1354, 1426, 1502, 1582, 1666,
  ],
  high: [
    9, 16, 26, 36, 46, 60, 66, 86, 100, 122,
    140, 158, 180, 197, 223, 253, 283, 313, 341, 385,
    406, 442, 464, 514, 538, 596, 628, 661, 701, 745,
    793, 845, 901, 961, 986, 1054, 1096, 1142, 1222, 1276,
  ],
}

/** Bits of the character count by encoding, for versions 1–9, 10–26 and 27–40; ISO/IEC 18004:2024 table 3. */
const countBits = { numeric: [10, 12, 14], alphanumeric: [9, 11, 13], byte: [8, 16, 16] } as const
const MODE_BITS = 4

/** The densest encoding that carries the whole text. */
function encodingOf(text: string): QrEncoding {
  if (/^\d*$/.test(text)) return 'numeric'
  return /^[0-9A-Z $%*+\-./:]*$/.test(text) ? 'alphanumeric' : 'byte'
}

function payloadBits(text: string, encoding: QrEncoding): number {
  switch (encoding) {
    case 'numeric':
      return Math.ceil((text.length * 10) / 3)
    case 'alphanumeric':
      return Math.ceil((text.length * 11) / 2)
    case 'byte':
      return Buffer.byteLength(text) * 8
  }
}

function smallestVersion(bits: number, level: CorrectionLevel, encoding: QrEncoding): number | null {
  const index = dataCodewords[level].findIndex((codewords, before) => {
    const header = MODE_BITS + countBits[encoding][before < 9 ? 0 : before < 26 ? 1 : 2]
    return header + bits <= codewords * 8
  })
  return index === -1 ? null : index + 1
}

/**
 * More correction where it costs nothing: the highest of M, Q, H that leaves the symbol as small as M's;
 * L only where not even the largest M symbol holds the text. Null when no symbol does.
 */
export function planQr(text: string): QrPlan | null {
  const encoding = encodingOf(text)
  const bits = payloadBits(text, encoding)
  const version = smallestVersion(bits, 'medium', encoding)
  if (version === null) {
    const versionOfLow = smallestVersion(bits, 'low', encoding)
    return versionOfLow === null ? null : { version: versionOfLow, level: 'low', encoding }
  }
  const fits = (level: CorrectionLevel) => smallestVersion(bits, level, encoding) === version
  return { version, level: fits('high') ? 'high' : fits('quartile') ? 'quartile' : 'medium', encoding }
}

export function qrMatrix(text: string, { version, level, encoding }: QrPlan): QrMatrix {
  return encodeQR(text, 'raw', { ecc: level, version, encoding, border: QUIET_ZONE_MODULES })
}

/** Calls `visit` for every horizontal run of dark modules of a row, left to right. */
export function forEachRun(row: readonly boolean[], visit: (from: number, length: number) => void): void {
  for (let x = 0; x < row.length; x += 1) {
    if (row[x] !== true) continue
    const from = x
    while (row[x] === true) x += 1
    visit(from, x - from)
  }
}
