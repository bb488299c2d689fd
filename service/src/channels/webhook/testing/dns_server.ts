import { createSocket } from 'node:dgram'
import { isIPv6 } from 'node:net'

/**
 * A DNS server that says what it is told to. `addressesOf` is asked anew for every question, as by a rebinding attack; a question that
 * is sent once more, because its answer was late, is the same one and has the same answer.
 */
export async function startDnsServer(
  addressesOf: (name: string, family: 4 | 6) => readonly string[],
): Promise<{ readonly address: string; stop(): Promise<void> }> {
  const socket = createSocket('udp4')
  const answered = new Map<string, readonly string[]>()
  socket.on('message', (question, sender) => {
    const name = readName(question)
    const type = question.readUInt16BE(name.end)
    const family = type === 28 ? 6 : 4
    const asked = `${question.readUInt16BE(0)} ${family} ${name.text}`
    const addresses =
      answered.get(asked) ??
      addressesOf(name.text, family).filter((address) => isIPv6(address) === (family === 6))
    answered.set(asked, addresses)
    socket.send(answerOf(question, name.end + 4, type, addresses), sender.port, sender.address)
  })
  await new Promise<void>((resolve) => {
    socket.bind(0, '127.0.0.1', resolve)
  })
  return {
    address: `127.0.0.1:${socket.address().port}`,
    stop: () =>
      new Promise((resolve) => {
        socket.close(() => resolve())
      }),
  }
}

function readName(message: Buffer): { readonly text: string; readonly end: number } {
  const labels: string[] = []
  let at = 12
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { text: labels.join('.'), end: at + 1 }
}

/** RFC 1035 §4.1: the question again, and each address with a time to live of 0. */
function answerOf(question: Buffer, questionEnd: number, type: number, addresses: readonly string[]): Buffer {
  const head = Buffer.from(question.subarray(0, questionEnd))
  head.writeUInt16BE(0x8180, 2)
  head.writeUInt16BE(addresses.length, 6)
  head.writeUInt32BE(0, 8)
  const records = addresses.map((address) => {
    const data = type === 28 ? ipv6Bytes(address) : Buffer.from(address.split('.').map(Number))
    const fixed = Buffer.alloc(12)
    fixed.writeUInt16BE(0xc00c, 0)
    fixed.writeUInt16BE(type, 2)
    fixed.writeUInt16BE(1, 4)
    fixed.writeUInt16BE(data.length, 10)
    return Buffer.concat([fixed, data])
  })
  return Buffer.concat([head, ...records])
}

function ipv6Bytes(address: string): Buffer {
  const [before = '', after = ''] = address.split('::')
  const groups = (text: string) => text.split(':').filter((group) => group !== '')
  const zeros = Array.from({ length: 8 - groups(before).length - groups(after).length }, () => '0')
  const all = [...groups(before), ...zeros, ...groups(after)]
  return Buffer.from(all.map((group) => group.padStart(4, '0')).join(''), 'hex')
}
