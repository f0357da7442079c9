'use strict'
// Transactions with kafkajs: a part of its driver. Gives the operations, made from what the driver has.

const SEEN = Buffer.from('seen ')

module.exports = ({ kafka, consumerOf, headersOf, recordOf, encode, decode, errorOf, OperationError, getAdmin }) => {
  // By the name of a producer: {producer, transaction}; initTransactions comes with the first begin.
  const producers = new Map()
  let readers = 0

  const messagesOf = records => records.map(record => ({
    key: decode(record.key),
    value: decode(record.value),
    headers: headersOf(record),
    ...(record.partition === null || record.partition === undefined ? {} : { partition: record.partition }),
  }))

  async function begin(name) {
    const opened = producers.get(name)
    opened.transaction = await opened.producer.transaction()
  }

  async function sendRecords(name, topic, records) {
    const messages = messagesOf(records)
    const sent = await producers.get(name).transaction.send({ topic, acks: -1, messages })
    const next = new Map(sent.map(one => [one.partition, Number(one.baseOffset)]))
    return messages.map(({ partition }) => {
      const offset = next.get(partition)
      next.set(partition, offset + 1)
      return { partition, offset }
    })
  }

  // Runs a consumer until `take(record)` says that it is enough, or time is up; tells which.
  async function read(options, topic, timeoutMs, take) {
    const consumer = consumerOf(options)
    await consumer.connect()
    try {
      await consumer.subscribe({ topics: [topic], fromBeginning: true })
      return await new Promise((resolve, reject) => {
        const timer = setTimeout(() => resolve(false), timeoutMs)
        consumer.on(consumer.events.CRASH, ({ payload }) => { clearTimeout(timer); reject(payload.error) })
        let enough = false
        consumer.run({
          autoCommit: false,
          eachBatch: async ({ batch }) => {
            for (const message of batch.messages) {
              if (!enough) enough = take(recordOf(topic, batch.partition, message))
            }
            if (enough) { clearTimeout(timer); resolve(true) }
          },
        }).catch(reject)
      })
    } finally {
      await consumer.disconnect()
    }
  }

  return {
    async txn_open({ producer, transactional_id, timeout_ms = 60000 }) {
      const opened = kafka.producer({
        transactionalId: transactional_id, transactionTimeout: timeout_ms, maxInFlightRequests: 1, idempotent: true,
      })
      await opened.connect()
      producers.set(producer, { producer: opened, transaction: null })
      return {}
    },

    async txn_begin({ producer }) {
      await begin(producer)
      return {}
    },

    async txn_send({ producer, topic, records }) {
      try {
        return { results: await sendRecords(producer, topic, records) }
      } catch (error) {
        return { results: records.map(() => ({ error: errorOf(error) })) }
      }
    },

    async txn_transform({ producer, group, source, target, count }) {
      const records = []
      const done = await read({ group, isolation: 'read_committed' }, source, 20000, record => {
        records.push(record)
        return records.length >= count
      })
      if (!done) throw new OperationError('TIMEOUT', `${records.length} of ${count} records`)
      await begin(producer)
      await sendRecords(producer, target, records.map(record => ({
        partition: record.partition,
        key: record.key,
        value: encode(Buffer.concat([SEEN, decode(record.value)])),
      })))
      const next = {}
      for (const { partition, offset } of records) next[partition] = String(offset + 1)
      await producers.get(producer).transaction.sendOffsets({
        consumerGroupId: group,
        topics: [{
          topic: source,
          partitions: Object.entries(next).map(([partition, offset]) => ({ partition: Number(partition), offset })),
        }],
      })
      return { records }
    },

    async txn_commit({ producer }) {
      await producers.get(producer).transaction.commit()
      return {}
    },

    async txn_abort({ producer }) {
      await producers.get(producer).transaction.abort()
      return {}
    },

    async txn_close({ producer }) {
      const { producer: closed } = producers.get(producer)
      producers.delete(producer)
      await closed.disconnect()
      return {}
    },

    async read_until({ topic, partitions, isolation, last, timeout_ms = 20000 }) {
      const missing = new Set(partitions)
      const records = []
      const group = `kafkajs-until-${process.pid}-${readers++}-${Date.now()}`
      await getAdmin() // So that the metadata is there before the clock runs.
      const reached = await read({ group, isolation }, topic, timeout_ms, record => {
        if (missing.has(record.partition)) {
          records.push(record)
          if (record.value === last) missing.delete(record.partition)
        }
        return missing.size === 0
      })
      return { records, reached }
    },
  }
}
