import { describe, expect, test } from 'vitest'
import { hostOf, isLoopback, literalAddress, loopbackHosts, readReceiverUrl } from './receiver_url.ts'

/**
 * What: the one rule for URLs that events are sent to, and the words in which it refuses.
 * How: what has to be taken beside what has to be refused. Hosts that lead inside are a corpus of their own, sent for real, in
 * channels/webhook.
 */
function answerTo(text: string, loopbackAllowed = false): string {
  const read = readReceiverUrl(text, loopbackAllowed)
  return read.ok ? `taken: ${read.value.href}` : `${read.rejection.code}: ${read.rejection.message}`
}

const refusedAs = (words: string) => `url_malformed: ${words}`
const NOT_ABSOLUTE = refusedAs('must be an absolute https URL')
const NOT_PUBLIC = refusedAs('must not lead to an address that is not public')

describe('a receiver’s URL', () => {
  test.each([
    'https://shop.example.com/',
    'https://shop.example.com/hooks/cambist?shop=7&all=%C3%A9',
    "https://shop.example.com:8443/a-b_c.d~e!$&'()*+,;=:@/f?g/?",
    'https://xn--bcher-kva.example/',
    'https://1.1.1.1/',
    'https://[2606:4700:4700::1111]:444/hook',
    'https://localhost.example.com/',
    'https://notlocalhost/',
  ])('%s is taken as it stands', (text) => expect(answerTo(text)).toBe(`taken: ${text}`))

  test('letters of scheme and host are small whoever wrote them, and no path is the root', () => {
    expect(answerTo('https://shop.example.com')).toBe('taken: https://shop.example.com/')
    expect(answerTo('HTTPS://Shop.Example.COM/Hook')).toBe('taken: https://shop.example.com/Hook')
  })

  test.each([
    '',
    'shop.example.com/hook',
    '//shop.example.com/hook',
    'https:shop.example.com',
    'https:/shop.example.com',
    'https://',
    'https:///hook',
    'https://?a=b',
    'https://shop.example.com/a b',
    ' https://shop.example.com/',
    'https://shop.example.com/\n',
    'https://shop.example.com/a|b',
    'https://shop.example.com/%zz',
    'https://shop.example.com/%4',
    'https://shop.example.com/é',
    'https://shop.example.com\\hook',
    'https://shop.example.com:99999/',
    'https://1.1.1.256/',
    'ftp://shop.example.com/',
    'xhttps://shop.example.com/',
    'http://shop.example.com/hook',
    'http://localhost:3000/hook',
  ])('%j is no absolute https URL', (text) => expect(answerTo(text)).toBe(NOT_ABSOLUTE))

  test('2048 characters are taken and one more is not', () => {
    const url = (length: number) => 'https://shop.example.com/'.padEnd(length, 'a')
    expect(answerTo(url(2048))).toBe(`taken: ${url(2048)}`)
    expect(answerTo(url(2049))).toBe(refusedAs('must have at most 2048 characters'))
  })

  test('a host has at most 253 characters, written as it is asked for', () => {
    const label = 'a'.repeat(63)
    const longest = [label, label, label, 'a'.repeat(61)].join('.')
    expect(answerTo(`https://${longest}:8443/`)).toBe(`taken: https://${longest}:8443/`)
    expect(answerTo(`https://${longest}./`)).toBe(`taken: https://${longest}./`)
    const tooLong = refusedAs('must have a host of at most 253 characters')
    expect(answerTo(`https://b${longest}/`)).toBe(tooLong)
    expect(answerTo(`https://${'%E3%8D%BF.'.repeat(20)}example/`)).toBe(tooLong)
  })

  test.each([
    'https://me@shop.example.com/',
    'https://:word@shop.example.com/',
    'https://me:word@shop.example.com/',
  ])('%s carries what would be a secret in a log', (text) =>
    expect(answerTo(text)).toBe(refusedAs('must not carry a user name or password')),
  )

  test('a fragment would never be sent', () => {
    expect(answerTo('https://shop.example.com/#part')).toBe(refusedAs('must not have a fragment'))
    expect(answerTo('https://shop.example.com/#')).toBe(refusedAs('must not have a fragment'))
  })

  test.each([
    'https://127.0.0.1/',
    'https://2130706433/',
    'https://0x7f.1/',
    'https://[::1]/',
    'https://10.0.0.1/',
    'https://169.254.169.254/latest',
    'https://localhost/',
    'https://LOCALHOST/',
    'https://localhost./',
    'https://shop.localhost/',
    'https://shop.localhost.:444/',
  ])('%s leads inside', (text) => {
    expect(answerTo(text)).toBe(NOT_PUBLIC)
    // What the sandbox may do besides is plain http.
    expect(answerTo(text, true)).toBe(NOT_PUBLIC)
  })
})

describe('in the sandbox', () => {
  test.each(loopbackHosts)('plain http to %s is taken, and only there', (host) => {
    const text = `http://${host}:3000/hook`
    expect(answerTo(text, true)).toBe(`taken: ${text}`)
    expect(answerTo(text)).toBe(NOT_ABSOLUTE)
  })

  test.each(['http://shop.example.com/', 'http://127.0.0.2/', 'http://10.0.0.1/', 'http://shop.localhost/'])(
    '%s is not',
    (text) => expect(answerTo(text, true)).toBe(NOT_ABSOLUTE),
  )

  test('the rest holds as everywhere', () => {
    expect(answerTo('http://me@localhost/', true)).toBe(refusedAs('must not carry a user name or password'))
    expect(answerTo('http://localhost/#part', true)).toBe(refusedAs('must not have a fragment'))
  })
})

test('plain http to this machine is known as such', () => {
  const answers = [
    'http://localhost/',
    'http://127.0.0.1:1/',
    'http://[::1]/',
    'https://localhost/',
    'http://a.example/',
  ]
  expect(answers.map((text) => isLoopback(new URL(text)))).toEqual([true, true, true, false, false])
})

test('an address that stands in the URL itself is found, a name is none', () => {
  const hosts = ['[2606:4700::1111]', '1.2.3.4', 'a1.2.3.4', '1.2.3.4a', 'example.com']
  expect(hosts.map(literalAddress)).toEqual(['2606:4700::1111', '1.2.3.4', null, null, null])
})

test('a host is told with its port, and never longer than one may be', () => {
  expect(hostOf('https://a.example:8443/hook')).toBe('a.example:8443')
  expect(hostOf('no URL')).toBe('no URL')
  expect(hostOf(`https://${'a'.repeat(300)}/`)).toBe('a'.repeat(260))
})
