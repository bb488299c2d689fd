import { expect, test } from 'vitest'
import { nothingOpened } from './opened.ts'

test('what was opened last is closed first, one after the other', async () => {
  const opened = nothingOpened()
  const closed: string[] = []
  opened.closeWith(async () => void closed.push('database'))
  opened.closeWith(async () => {
    closed.push('server begins')
    await Promise.resolve()
    closed.push('server ends')
  })
  await opened.closeAll()
  expect(closed).toEqual(['server begins', 'server ends', 'database'])
})

test('a failure keeps nothing else open, and is told', async () => {
  const opened = nothingOpened()
  const closed: string[] = []
  opened.closeWith(() => void closed.push('database'))
  opened.closeWith(() => {
    throw new Error('the node hung up')
  })
  opened.closeWith(async () => {
    throw new Error('the port was gone')
  })
  await expect(opened.closeAll()).rejects.toThrow('the port was gone')
  expect(closed).toEqual(['database'])
})

test('nothing is closed twice', async () => {
  const opened = nothingOpened()
  let times = 0
  opened.closeWith(() => {
    times += 1
  })
  await Promise.all([opened.closeAll(), opened.closeAll()])
  await opened.closeAll()
  expect(times).toBe(1)
})
