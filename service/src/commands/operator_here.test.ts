import { hostname, userInfo } from 'node:os'
import { expect, test } from 'vitest'
import { operatorHere } from './operator_here.ts'

test('whoever types a command is named as the system does, and by a number where it has no name', () => {
  const host = hostname()
  expect(operatorHere()).toMatchObject({
    actor: 'operator',
    machine: { user: userInfo().username, host },
  })
  const nameless = operatorHere(() => {
    throw new Error('uv_os_get_passwd returned ENOENT')
  })
  expect(nameless.machine).toEqual({ user: `uid ${process.getuid?.()}`, host })
})
