import { BlockList, isIP } from 'node:net'
import { expect, test } from 'vitest'
import { parseIpRange } from './ip_range.ts'

test.each([
  ['203.0.113.7', '203.0.113.7'],
  [' 10.0.0.0/8 ', '10.0.0.0/8'],
  ['0.0.0.0/0', '0.0.0.0/0'],
  ['203.0.113.7/32', '203.0.113.7/32'],
  ['2001:DB8::/32', '2001:db8::/32'],
  ['::/0', '::/0'],
  ['::1', '::1'],
  ['64:ff9b::10.0.0.0/104', '64:ff9b::10.0.0.0/104'],
  ['2001:db8:0:1::/64', '2001:db8:0:1::/64'],
])('%s is a range, and Node reads it too', (text, canonical) => {
  expect(parseIpRange(text)).toEqual({ ok: true, value: canonical })
  const [network = '', prefix = '32'] = canonical.split('/')
  expect(() =>
    new BlockList().addSubnet(network, Number(prefix), isIP(network) === 4 ? 'ipv4' : 'ipv6'),
  ).not.toThrow()
})

test.each([
  '',
  'localhost',
  '10.0.0',
  '10.0.0.0/33',
  '10.0.0.0/',
  '10.0.0.0/08x',
  '10.0.0.5/8',
  '10.0.0.0/8/8',
  '::/129',
  '2001:db8::1/64',
  '64:ff9b::10.0.0.1/104',
  '::ffff:10.0.0.0/104',
  '::ffff:a00:1',
  'fe80::1%eth0',
  '010.0.0.1',
])('%s is refused', (text) => {
  expect(parseIpRange(text).ok).toBe(false)
})
