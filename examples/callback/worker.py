import os
import sys
from aliyunsdkcore.acs_exception.exceptions import ServerException
from aliyunsdkcore.client import AcsClient
from aliyunsdkfnf.request.v20190315 import ReportTaskSucceededRequest
def main():
  account_id = os.environ['ACCOUNT_ID']
  akid = os.environ['AK_ID']
  ak_secret = os.environ['AK_SECRET']
  fnf_client = AcsClient(akid, ak_secret, "cn-hangzhou")
  fnf_client.add_endpoint("cn-hangzhou", "fnf", os.environ.get('FNF_ENDPOINT', '127.0.0.1:8080'))
  task_token = sys.argv[1]
  print("Task token: " + task_token)
  try:
    request = ReportTaskSucceededRequest.ReportTaskSucceededRequest()
    request.set_Output("{\"status\": \"ok\"}")
    request.set_TaskToken(task_token)
    resp = fnf_client.do_action_with_exception(request)
    print("ReportTaskSucceeded finished")
  except ServerException as e:
    print(e)
if __name__ == '__main__':
    main()
